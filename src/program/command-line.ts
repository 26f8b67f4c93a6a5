/**
 * The arguments of the program. The only options are `--help` and `--version`; settings come from the environment. Whoever
 * tries another argument is told which variable to set instead. Prints nothing.
 */
import { basename, relative } from 'node:path'
import { type Setting, settings } from '../options/settings.ts'

/** What to print instead of starting the service. */
export interface Output {
  readonly text: string
  readonly exitCode: 0 | 1
}

/** The text to print for these arguments and the exit code; undefined without arguments: the service then starts. */
export function handleArgs(args: readonly string[], command: string, version: string): Output | undefined {
  if (args.length === 0) return undefined
  if (args.includes('--help') || args.includes('-h')) return { text: formatHelp(command), exitCode: 0 }
  if (args.includes('--version') || args.includes('-v')) return { text: version, exitCode: 0 }
  return { text: explainArguments(args, command), exitCode: 1 }
}

/** How a person would start this script from the working directory. */
export function formatCommand(script: string, workingDirectory: string): string {
  if (basename(script) === 'petstore') return 'npx petstore'
  const path = relative(workingDirectory, script)
  return `node ${path.startsWith('..') ? script : path}`
}

function formatHelp(command: string): string {
  const head = { variable: 'Variable', fallback: 'Default', meaning: 'Meaning' }
  const rows = [head, ...Object.values(settings)]
  const nameWidth = Math.max(...rows.map(({ variable }) => variable.length))
  const fallbackWidth = Math.max(...rows.map(({ fallback }) => fallback.length))
  const table = rows.map(
    ({ variable, fallback, meaning }) =>
      `  ${variable.padEnd(nameWidth)}  ${(fallback || '-').padEnd(fallbackWidth)}  ${meaning}`,
  )
  return `Usage: ${command}

A pet store service: JSON over HTTP, with one JSON file as its database.
Settings come from environment variables:

${table.join('\n')}

Keys and origins are comma-separated. Without keys, one is created for each run and printed.
Keys are required if HOST is not a loopback address, or if PETSTORE_LOG is silent.

Example: PORT=4000 PETSTORE_DATA_FILE=mypets.json ${command}

Options:
  -h, --help     print this text
  -v, --version  print the version`
}

/** One line: the unknown options or, if there are none, the environment variables to set instead. */
function explainArguments(args: readonly string[], command: string): string {
  const unknown: string[] = []
  const understood: string[] = []
  const assignments: string[] = []
  const rest = [...args]
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, option = arg, inlineValue] = /^(-[^=]*)=(.*)$/s.exec(arg) ?? []
    const setting = Object.values<Setting>(settings).find(({ familiarOptions }) =>
      familiarOptions.includes(option),
    )
    if (setting !== undefined) {
      const value = inlineValue ?? (rest[0]?.startsWith('-') === false ? rest.shift() : undefined)
      // A key is a secret, and what is printed may end up in a log.
      const shown = value === undefined || setting === settings.apiKeys ? '…' : quote(value)
      understood.push(value === undefined ? option : `${option} ${shown}`)
      assignments.push(`${setting.variable}=${shown}`)
    } else if (option.startsWith('-')) {
      unknown.push(option)
    } else {
      understood.push(quote(arg))
      assignments.push(/^\d+$/.test(arg) ? `PORT=${arg}` : `PETSTORE_DATA_FILE=${quote(arg)}`)
    }
  }
  if (unknown.length > 0) return `${unknown.join(' ')}: unknown; ${command} --help lists the settings`
  return `${understood.join(' ')}: set environment variables instead, as in ${assignments.join(' ')} ${command}`
}

/** The value quoted for a POSIX shell, if need be. Control characters become `?`, so that it stays on one line. */
function quote(value: string): string {
  if (/^[\w./:,@%+=~*-]+$/.test(value)) return value
  return `'${value.replaceAll(/\p{Cc}/gu, '?').replaceAll("'", String.raw`'\''`)}'`
}
