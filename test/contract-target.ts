/** The server that the contract suite verifies, by arguments or by the environment, and what can be said of it before the first case. */
import { connect } from 'node:net'
import { basename, relative } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'
import { type Answer, type Client, createClient, Finding, NoAnswer, PlainError } from './contract-client.ts'
import { startOwnServer } from './contract-own-server.ts'
import { describeSlowness, type Scope } from './contract-verdict.ts'

export interface Target {
  client: Client
  /** Which server it is, and what is special about it, in sentences, to be printed first; undefined for the service of this project. */
  words: string | undefined
  scope: Scope
  close(): Promise<void>
}

interface Named {
  readonly address: string | undefined
  readonly key: string | undefined
  /** Where the key came from, as messages name it. */
  readonly keySource: string
  readonly scope: Scope
}

/** Arguments that take no value. */
const flags = ['all', 'basics', 'help']

/** What the suite takes and prints; undefined if the arguments do not ask for it. */
export function readHelp(argv: readonly string[]): string | undefined {
  if (!argv.slice(2).some((arg) => arg === '--help' || arg === '-h')) return undefined
  const { command, verify, keys } = findCommand(argv)
  return `Usage: ${command} ${verify}http://127.0.0.1:4000/v1 ${keys}my-key [--basics] [--all]

Verifies any server of the pet store interface, in any language, and says what to fix first.

  The first argument is its address, and the second a key that it knows. They may come by PETSTORE_URL and
  PETSTORE_API_KEY instead.
  --basics    tries what a first server must do, without integers beyond 2^53 and what is rarely met
  --all       prints each failure in full, and tries all cases of a server that is slow, too
  -h, --help  prints this text

It adds pets, some 140 in the first run. Ctrl-C ends it with the exit code 130, and prints what was found so far.
The exit code is 0 if all was tried and passed, 1 if something failed or nothing could be tried, and 2 if nothing
failed and something was not tried. With --basics, it is 0 if all passed that the store's pets let it try.`
}

/** `argv` as process.argv. Throws a PlainError that says why there is no server to verify, in a few lines. */
export async function openTarget(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<Target> {
  const usage = formatUsage(argv)
  const named = readNames(argv.slice(2), env, usage)
  const { address, scope } = named
  if (!address && !named.key && startOwnServer !== null) {
    const server = await startOwnServer()
    const client = createClient(`${server.address}/v1`, server.key)
    return { client, scope, words: undefined, close: server.close }
  }
  if (!address) throw new PlainError(`Which server is to be verified? ${usage}`)
  // It would be printed.
  if (address.includes('@')) throw new PlainError(`An address has no user and no password. ${usage}`)
  // As in PETSTORE_API_KEYS, which lists those of a server.
  const [key] = (named.key ?? '').split(',', 1)
  if (!key) throw new PlainError(`The key of the server is missing. ${usage}`)
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new PlainError(
      `The key, by ${named.keySource}, has characters that a bearer key cannot have (spaces, or characters beyond ASCII).`,
    )
  const client = createClient(parseBase(address, usage), key)
  await reach(client, named.keySource)
  const words = [`Verifying ${client.base}`]
  const loopback = await describeLoopback(client.base)
  if (loopback !== undefined) words.push(loopback)
  const slowness = scope.isPatient ? undefined : describeSlowness(client)
  if (slowness !== undefined) words.push(slowness)
  return { client, scope, words: words.join('\n'), close: async () => {} }
}

function readNames(args: readonly string[], env: NodeJS.ProcessEnv, usage: string): Named {
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: {
      verify: { type: 'string' },
      keys: { type: 'string' },
      ...Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' } as const])),
    },
    strict: false,
    tokens: true,
  })
  for (const token of tokens)
    if (token.kind === 'option' && !['verify', 'keys', ...flags].includes(token.name))
      throw new PlainError(`${token.rawName}: does not go with this. ${usage}`)
  const texts = [...(typeof values['verify'] === 'string' ? [values['verify']] : []), ...positionals]
  const [address = env['PETSTORE_URL'], positionalKey] = texts
  const keyVariable = env['PETSTORE_API_KEY'] ? 'PETSTORE_API_KEY' : 'PETSTORE_API_KEYS'
  if (texts.length > 2) throw new PlainError(`One address and one key are enough. ${usage}`)
  const scope = { isPatient: values['all'] !== undefined, isBasic: values['basics'] !== undefined }
  if (typeof values['keys'] === 'string') return { address, key: values['keys'], keySource: '--keys', scope }
  return positionalKey === undefined
    ? { address, key: env[keyVariable], keySource: keyVariable, scope }
    : { address, key: positionalKey, keySource: 'the second argument', scope }
}

interface Command {
  readonly command: string
  /** What stands before the address and the key, if the program was started and not the suite. */
  readonly verify: string
  readonly keys: string
}

function findCommand([, script = '', ...args]: readonly string[]): Command {
  const path = relative('', script)
  const command =
    basename(script) === 'petstore' ? 'npx petstore' : `node ${path.startsWith('..') ? script : path}`
  const isProgram = args.some((arg) => arg.startsWith('--verify'))
  return isProgram ? { command, verify: '--verify ', keys: '--keys ' } : { command, verify: '', keys: '' }
}

/** The line to type. */
function formatUsage(argv: readonly string[]): string {
  const { command, verify, keys } = findCommand(argv)
  return `Type its address and a key that it knows, such as:\n  ${command} ${verify}http://127.0.0.1:4000/v1 ${keys}my-key`
}

function parseBase(address: string, usage: string): string {
  const [, port = ''] = /^https?:\/\/[^/]*:(\d+)(?:\/|$)/.exec(address) ?? []
  if (Number(port) > 65_535) throw new PlainError(`${address}: ports end at 65535. ${usage}`)
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(address) || !URL.canParse(address))
    throw new PlainError(`${address} is no address such as http://127.0.0.1:4000/v1. ${usage}`)
  const base = address.replace(/(?:\/pets)?\/*$/, '')
  return base.endsWith('/v1') ? base : `${base}/v1`
}

/** Finds out where the operations are and how the key is taken, so that a mistake there does not hide all others. */
async function reach(client: Client, keySource: string): Promise<void> {
  const { base } = client
  let answer = await client.list().catch(async (error: unknown) => {
    throw error instanceof NoAnswer ? new PlainError(await explain(client, error)) : error
  })
  // Some servers take HTTP there, to say that it is none.
  const tls = answer.status === 400 ? await findTls(base) : undefined
  if (tls !== undefined) throw new PlainError(tls)
  // A server may look at the path first or at the key.
  if (answer.status === 404) answer = await findOtherAddress(client, answer)
  if (answer.status === 401 || answer.status === 403) {
    answer = await findOtherKeyForm(client, answer, keySource)
    if (answer.status === 404 && client.base === base) await findOtherAddress(client, answer)
  }
  // So that a slow server is known to be slow.
  await client.list().catch(() => {})
  const withQuery = await client.list('?limit=20').catch(() => undefined)
  if (answer.status !== 200 || withQuery?.status !== 404 || client.faults.has('address')) return
  const received = '404, and 200 without "?limit=20": is the path compared together with its query?'
  client.faults.set('address', new Finding(withQuery, 'a list: the path ends in front of the "?"', received))
}

async function findOtherAddress(client: Client, answer: Answer): Promise<Answer> {
  const { base } = client
  const root = base.slice(0, -'/v1'.length)
  for (const other of [root, `${root}/api/v1`, `${root}/api`]) {
    client.base = other
    const found = await client.list()
    if (found.status === 404) continue
    const received = `404 there, and ${found.status} for ${other}/pets, where the rest is tried`
    client.faults.set('address', new Finding(answer, 'the operations under /v1', received))
    return found
  }
  client.base = `${base}/pets`
  const slash = await client.send('/')
  client.base = base
  if (slash.status !== 404) {
    const received = `404 there, and ${slash.status} for ${base}/pets/, with a slash at the end`
    client.faults.set('address', new Finding(answer, 'the path /pets', received))
  }
  return answer
}

async function findOtherKeyForm(client: Client, answer: Answer, keySource: string): Promise<Answer> {
  const { key, keyHeaders } = client
  for (const [words, headers] of [
    ['Authorization: <key>', { Authorization: key }],
    ['Authorization: bearer <key>', { Authorization: `bearer ${key}` }],
    ['authorization: Bearer <key>', { authorization: `Bearer ${key}` }],
    ['X-Api-Key: <key>', { 'X-Api-Key': key }],
  ] as const) {
    client.keyHeaders = headers
    const found = await client.list()
    if (found.status === 401 || found.status === 403) continue
    const received = `${answer.status}, and ${found.status} to "${words}", with which the rest is tried`
    client.faults.set('key', new Finding(answer, 'success for "Authorization: Bearer <key>"', received))
    return found
  }
  client.keyHeaders = keyHeaders
  throw new PlainError(
    `The server refuses the key, which came by ${keySource}. Is it one that the server knows, and does it read the header so?\n` +
      `  sent:     GET ${client.base}/pets, with the header "Authorization: Bearer ${key}"\n` +
      `  expected: success\n  received: ${answer.received}`,
  )
}

/** Why there is nothing to verify, in a sentence or two. */
async function explain(client: Client, error: NoAnswer): Promise<string> {
  const { reason, code, isLate, isUnreachable, operation } = error
  const { base } = client
  const { protocol, origin } = new URL(base)
  if (protocol === 'https:' && /^(?:EPROTO|ERR_SSL)/.test(code))
    return `${origin} does not speak TLS. Is it http:// and not https://?`
  if (protocol === 'https:' && /CERT|SIGNATURE/.test(code))
    return `${origin} has a certificate that Node does not trust (${error.cause.message}). ${withoutTls}`
  // An alert of TLS begins with U+0015.
  if (code === 'NOT_HTTP' && !reason.includes('"U+0015')) return `${origin} does not speak HTTP: ${reason}.`
  if (isUnreachable)
    return (await findOtherLoopback(base)) ?? `${base} does not respond: ${reason}. ${isItRunning}`
  const tls = isLate ? undefined : await findTls(base)
  if (tls !== undefined) return tls
  if (isLate) return `${origin} takes a connection, but does not respond: ${reason}.`
  const next = await client.list().catch((second: unknown) => second)
  if (next instanceof NoAnswer && next.isUnreachable)
    return `${origin}: your server ended while it handled ${operation}: read its window.`
  return `${origin} closed the connection without a response to ${operation}: the window of your server may say why.`
}

const isItRunning = 'Is your server running, and is this its address?'
const withoutTls = 'Start your server without TLS, and use http.'

/** What is there at an address of http, in a sentence, if it is TLS. */
function findTls(base: string): Promise<string | undefined> {
  const { protocol, hostname, port, origin } = new URL(base)
  if (protocol === 'https:') return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const host = hostname.replaceAll(/[[\]]/g, '')
    const socket = connectTls({ host, port: Number(port) || 80, rejectUnauthorized: false, timeout: 2000 })
    const end = (advice?: string) => {
      socket.destroy()
      resolve(advice && `${origin} speaks TLS. ${advice}`)
    }
    socket.on('secureConnect', () => end(socket.authorized ? 'Is it https:// and not http://?' : withoutTls))
    socket.on('timeout', () => end())
    // An alert of the other side is TLS, too. What is no TLS at all gives a wrong version.
    socket.on('error', (error) => end(/alert/i.test(error.message) ? withoutTls : undefined))
    socket.on('close', () => end())
  })
}

/** "localhost" is 127.0.0.1 for one program and ::1 for another. In a sentence, if something listens on the one that was not meant. */
async function findOtherLoopback(base: string): Promise<string | undefined> {
  const { hostname, port } = new URL(base)
  const other = { '127.0.0.1': '::1', '[::1]': '127.0.0.1' }[hostname]
  if (other === undefined || !(await isListening(other, port))) return undefined
  const shown = other === '::1' ? '[::1]' : other
  return `Nothing listens on ${hostname}:${port}, but something does on ${shown}:${port}, which may be what "localhost" is there. Use ${base.replace(hostname, shown)}, or have your server listen on ${hostname.replaceAll(/[[\]]/g, '')}.`
}

/** In a sentence, if what answers as localhost cannot be reached at 127.0.0.1, as a page or another program may try. */
async function describeLoopback(base: string): Promise<string | undefined> {
  const { hostname, port } = new URL(base)
  if (hostname !== 'localhost' || !(await isListening('::1', port)) || (await isListening('127.0.0.1', port)))
    return undefined
  return 'localhost is [::1] here: nothing listens on 127.0.0.1.'
}

function isListening(host: string, port: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) || 80, timeout: 2000 })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => end(true))
    socket.on('timeout', () => end(false))
    socket.on('error', () => end(false))
  })
}
