/**
 * The arguments of the program. There are no options but `--help` and `--version`: settings come from the environment,
 * so that whoever tries an argument is told the variable. Prints nothing.
 */
import { basename, relative } from 'node:path'
import { type SettingName, settings } from './config.ts'

/** What to print instead of starting the service. */
export interface Answer {
  readonly text: string
  readonly exitCode: 0 | 1
}

/** Options that people know from other programs, by the setting that each stands for. */
const familiarOptions: Readonly<Record<SettingName, readonly string[]>> = {
  PORT: ['--port', '-p'],
  HOST: ['--host', '--hostname', '--address', '-H'],
  PETSTORE_API_KEYS: ['--key', '--keys', '--api-key', '--api-keys'],
  PETSTORE_DATA_FILE: ['--file', '--data', '--data-file', '--db', '-f'],
  PETSTORE_CORS_ORIGINS: ['--cors', '--origin', '--origins', '--cors-origins'],
  PETSTORE_DELAY: ['--delay', '-d'],
  PETSTORE_LOG: ['--log', '--log-level'],
}
const settingNames = Object.keys(settings).filter((name): name is SettingName => name in settings)

/** What the arguments get, called by this command; undefined without any, and the service is to be started. */
export function answerArguments(
  args: readonly string[],
  command: string,
  version: string,
): Answer | undefined {
  if (args.length === 0) return undefined
  if (args.includes('--help') || args.includes('-h')) return { text: formatHelp(command), exitCode: 0 }
  if (args.includes('--version') || args.includes('-v')) return { text: version, exitCode: 0 }
  return { text: refuse(args, command), exitCode: 1 }
}

/** How to call the program again, as a person would type it in the working directory. */
export function formatCommand(script: string, workingDirectory: string): string {
  if (basename(script) === 'petstore') return 'npx petstore'
  const path = relative(workingDirectory, script)
  return `node ${path.startsWith('..') ? script : path}`
}

function formatHelp(command: string): string {
  const rows = settingNames.map((name) => [name, settings[name].fallback || 'none', settings[name].meaning])
  const table = [['Variable', 'Default', 'Meaning'], ...rows].map(
    ([name = '', fallback = '', meaning = '']) => `  ${name.padEnd(21)}  ${fallback.padEnd(14)}  ${meaning}`,
  )
  return [
    `Usage: ${command}`,
    '',
    'A pet store service: JSON over HTTP, with one JSON file as its database. Settings come from the',
    'environment:',
    '',
    ...table,
    '',
    `Example: PORT=4000 PETSTORE_DATA_FILE=mypets.json ${command}`,
    '',
    'Options:',
    '  -h, --help     print this text',
    '  -v, --version  print the version',
  ].join('\n')
}

/** One line: what is no option, or else the variables to set instead of the arguments. */
function refuse(args: readonly string[], command: string): string {
  const unknown: string[] = []
  const understood: string[] = []
  const assignments: string[] = []
  const rest = [...args]
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, option = arg, inlineValue] = /^(-[^=]*)=(.*)$/s.exec(arg) ?? []
    const setting = settingNames.find((name) => familiarOptions[name].includes(option))
    if (setting !== undefined) {
      const value = inlineValue ?? (rest[0]?.startsWith('-') === false ? rest.shift() : undefined)
      // A key is not repeated: what is printed may be kept in a log.
      const shown = value === undefined || setting === 'PETSTORE_API_KEYS' ? '…' : quote(value)
      understood.push(value === undefined ? option : `${option} ${shown}`)
      assignments.push(`${setting}=${shown}`)
    } else if (option.startsWith('-')) {
      unknown.push(option)
    } else {
      understood.push(quote(arg))
      assignments.push(/^\d+$/.test(arg) ? `PORT=${arg}` : `PETSTORE_DATA_FILE=${quote(arg)}`)
    }
  }
  if (unknown.length > 0) return `${unknown.join(' ')}: not understood; ${command} --help lists the settings`
  return `${understood.join(' ')}: settings come from the environment: ${assignments.join(' ')} ${command}`
}

/** The value as a POSIX shell takes it in one piece; on one line, whatever is in it. */
function quote(value: string): string {
  if (/^[\w./:,@%+=~*-]+$/.test(value)) return value
  return `'${value.replaceAll(/\p{Cc}/gu, '?').replaceAll("'", String.raw`'\''`)}'`
}
