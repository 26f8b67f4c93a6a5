/** What the arguments of the program say, and its help. Prints nothing. */
import { basename, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { maskUser, type Setting, settings } from '../options/settings.ts'

/** The values of the arguments that are given, by their names without dashes. */
export type Arguments = NodeJS.Dict<string>

export interface GivenArguments {
  readonly given: Arguments
  readonly faults: readonly string[]
}

/**
 * Returns a text to print, or the values of the arguments that are given and a line for each that cannot be
 * understood. A text that is no argument may be a secret, so it is not shown.
 */
export function parseArguments(
  args: readonly string[],
  command: string,
  version: string,
  env: NodeJS.ProcessEnv = {},
): string | GivenArguments {
  const names = ['import', 'export', ...Object.values(settings).map(({ argument }) => argument)]
  const { values, tokens } = splitArgs(args, names)
  if (values['help'] === true) return formatHelp(command)
  if (values['version'] === true) return version
  const taken = findTakenByNpm(args, names, env)
  if (taken !== undefined) return { given: {}, faults: [`${taken}; ${command} --help lists the arguments`] }
  const given: Arguments = {}
  const faults: string[] = []
  /** What comes next may be the value of an option that is unknown. */
  let isAfterUnknown = false
  for (const token of tokens) {
    const fault = isAfterUnknown && token.kind === 'positional' ? undefined : findFault(token, names)
    const isUnknown = token.kind === 'option' && ![...names, 'check'].includes(token.name)
    isAfterUnknown = isUnknown && token.value === undefined
    if (fault !== undefined) faults.push(`${fault}; ${command} --help lists the arguments`)
    else if (token.kind === 'option') given[token.name] = token.value ?? ''
  }
  return { given, faults }
}

/**
 * `npm start --port 4000` tells the name to npm, which sets npm_config_port=true; with `--port=4000`, npm
 * takes the value too.
 */
function findTakenByNpm(
  args: readonly string[],
  names: readonly string[],
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (env['npm_package_name'] !== 'petstore' || env['npm_lifecycle_event'] !== 'start') return undefined
  const variableOf = (name: string): string => env[`npm_config_${name.replaceAll('-', '_')}`] ?? ''
  const [taken, ...others] = names.filter((name) => variableOf(name) !== '')
  if (taken === undefined) return undefined
  const value = variableOf(taken).replace(/^true$/, () => args[0] ?? '…')
  const isHidden = others.length > 0 || /keys|database/.test(taken) || !/^[\w./:@%+~-]+$/.test(value)
  const meant = `npm start -- --${[taken, ...others].join(' … --')} ${isHidden ? '…' : maskUser(value)}`
  return `npm took --${taken}; did you mean \`${meant}\``
}

function splitArgs(args: readonly string[], names: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      check: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
    strict: false,
    tokens: true,
  })
}

type Token = ReturnType<typeof splitArgs>['tokens'][number]

function findFault(token: Token, names: readonly string[]): string | undefined {
  if (token.kind === 'positional') return `argument ${token.index + 1}: expected one that begins with --`
  if (token.kind === 'option-terminator') return undefined
  const { name, rawName, value } = token
  if (name === 'check') return value === undefined ? undefined : `${rawName}: expected no value`
  if (!names.includes(name)) return `${rawName.replace(/[^\w-].*/s, '…')}: unknown`
  if (value === undefined) return `${rawName}: expected a value after it`
  if (token.inlineValue || !value.startsWith('--')) return undefined
  return `${rawName}: expected a value after it; one that begins with -- comes behind a =`
}

/** Returns how a person would start this script from the working directory. */
export function formatCommand(script: string, workingDirectory: string): string {
  if (basename(script) === 'petstore') return 'npx petstore'
  const path = relative(workingDirectory, script)
  return `node ${path.startsWith('..') ? script : path}`
}

function formatHelp(command: string): string {
  const rows = [
    ['Argument', 'Variable', 'Default', 'Meaning'],
    ...Object.values<Setting>(settings).map(({ argument, variable, fallback = '-', meaning }) => [
      `--${argument}`,
      variable,
      fallback,
      meaning,
    ]),
  ]
  const widthOf = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  const table = rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widthOf(column)))
    return `  ${cells.join('  ').trimEnd()}`
  })
  return `Usage: ${command} [--port 4000] [--file mypets.json] …

A pet store service: JSON over HTTP, with one JSON file or a PostgreSQL as its database.
A setting is an argument or an environment variable; the argument wins:

${table.join('\n')}

Keys and origins are comma-separated. Without keys, one is created for each run and printed.
Keys are required if the host is not a loopback address, or if the log is silent.
Other users of this machine can see a key or a password that is given as an argument.
In the log of requests, those that an open page sends by itself have the word poll at the end.

Options:
  --check        say what a start would say of settings and data file, and change nothing; exit code 0 or 1
  --import FILE  store the pets of a data file in the database, which has none, and exit
  --export FILE  write the pets of the database into a new data file, and exit
  --verify URL   test another server against the interface, with its key by --keys; --verify --help says more
  -h, --help     print this text
  -v, --version  print the version`
}
