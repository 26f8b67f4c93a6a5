/** The arguments of the program: one for each setting, `--import`, `--export`, `--help` and `--version`. Prints nothing, and checks no value. */
import { basename, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { ConfigError, maskUser, settings, type Arguments, type Setting } from '../options/settings.ts'

/**
 * Returns a text to print, or the values of the arguments that are given. Throws a ConfigError of one line. A text that is no argument may be
 * a secret, so it is not shown.
 */
export function handleArgs(
  args: readonly string[],
  command: string,
  version: string,
  env: NodeJS.ProcessEnv = {},
): string | Arguments {
  const refuse = (fault: string): never => {
    throw new ConfigError(`${fault}; ${command} --help lists the arguments`)
  }
  const names = ['import', 'export', ...Object.values(settings).map(({ argument }) => argument)]
  const { values, tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
    strict: false,
    tokens: true,
  })
  if (values['help'] === true) return formatHelp(command)
  if (values['version'] === true) return version
  // `npm start --port 4000` tells the name to npm, which sets npm_config_port=true; with `--port=4000`, npm takes the value too.
  const isNpmStart = env['npm_package_name'] === 'petstore' && env['npm_lifecycle_event'] === 'start'
  const variableOf = (name: string): string => env[`npm_config_${name.replaceAll('-', '_')}`] ?? ''
  const [taken, ...others] = names.filter((name) => isNpmStart && variableOf(name) !== '')
  if (taken !== undefined) {
    const value = variableOf(taken).replace(/^true$/, () => args[0] ?? '…')
    const isHidden = others.length > 0 || /keys|database/.test(taken) || !/^[\w./:@%+~-]+$/.test(value)
    const shown = isHidden ? '…' : maskUser(value)
    return refuse(
      `npm took --${taken}; did you mean \`npm start -- --${[taken, ...others].join(' … --')} ${shown}\``,
    )
  }
  const given: Arguments = {}
  for (const token of tokens) {
    if (token.kind === 'positional')
      return refuse(`argument ${token.index + 1}: expected one that begins with --`)
    if (token.kind === 'option-terminator') continue
    if (!names.includes(token.name)) return refuse(`${token.rawName.replace(/[^\w-].*/s, '…')}: unknown`)
    if (token.value === undefined) return refuse(`${token.rawName}: expected a value after it`)
    if (!token.inlineValue && token.value.startsWith('--'))
      return refuse(`${token.rawName}: expected a value after it; one that begins with -- comes behind a =`)
    given[token.name] = token.value
  }
  return given
}

/** How a person would start this script from the working directory. */
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
  --import FILE  store the pets of a data file in the database, which has none, and exit
  --export FILE  write the pets of the database into a new data file, and exit
  --verify URL   test another server against the interface, with its key by --keys; --verify --help says more
  -h, --help     print this text
  -v, --version  print the version`
}
