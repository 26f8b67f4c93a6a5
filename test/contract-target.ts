/** The server that the contract suite verifies, by arguments or by the environment, and what can be said of it before the first case. */
import { basename, relative } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { parseArgs } from 'node:util'
import { type Answer, type Client, createClient, Finding, NoAnswer, PlainError } from './contract-client.ts'
import { startOwnServer } from './contract-own-server.ts'
import { describeSlowness } from './contract-verdict.ts'

export interface Target {
  client: Client
  /** Which server it is, and what is special about it, in sentences, to be printed first. */
  words: string
  /** Try all cases, and print each failure in full. */
  isAll: boolean
  close(): Promise<void>
}

interface Named {
  readonly address: string | undefined
  readonly key: string | undefined
  /** Where the key came from, as messages name it. */
  readonly keySource: string
  readonly isAll: boolean
}

/** `argv` as process.argv. Throws a PlainError that says why there is no server to verify, in a few lines. */
export async function openTarget(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<Target> {
  const usage = formatUsage(argv)
  const named = readNames(argv.slice(2), env, usage)
  const { address, isAll } = named
  if (!address && !named.key && startOwnServer !== null) {
    const server = await startOwnServer()
    const client = createClient(`${server.address}/v1`, server.key)
    return { client, isAll, words: `Verifying this project's service at ${client.base}`, close: server.close }
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
  const slowness = isAll ? undefined : describeSlowness(client)
  if (slowness !== undefined) words.push(slowness)
  return { client, isAll, words: words.join('\n'), close: async () => {} }
}

function readNames(args: readonly string[], env: NodeJS.ProcessEnv, usage: string): Named {
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: { verify: { type: 'string' }, keys: { type: 'string' }, all: { type: 'boolean' } },
    strict: false,
    tokens: true,
  })
  for (const token of tokens)
    if (token.kind === 'option' && !['verify', 'keys', 'all'].includes(token.name))
      throw new PlainError(`${token.rawName}: does not go with this. ${usage}`)
  const texts = [...(typeof values['verify'] === 'string' ? [values['verify']] : []), ...positionals]
  const [address = env['PETSTORE_URL'], positionalKey] = texts
  const keyVariable = env['PETSTORE_API_KEY'] ? 'PETSTORE_API_KEY' : 'PETSTORE_API_KEYS'
  if (texts.length > 2) throw new PlainError(`One address and one key are enough. ${usage}`)
  const isAll = values['all'] !== undefined
  if (typeof values['keys'] === 'string') return { address, key: values['keys'], keySource: '--keys', isAll }
  return positionalKey === undefined
    ? { address, key: env[keyVariable], keySource: keyVariable, isAll }
    : { address, key: positionalKey, keySource: 'the second argument', isAll }
}

/** The line to type. */
function formatUsage([, script = '', ...args]: readonly string[]): string {
  const path = relative('', script)
  const command =
    basename(script) === 'petstore' ? 'npx petstore' : `node ${path.startsWith('..') ? script : path}`
  const isProgram = args.some((arg) => arg.startsWith('--verify'))
  const [verify, keys] = isProgram ? ['--verify ', '--keys '] : ['', '']
  return `Type its address and a key that it knows, such as:\n  ${command} ${verify}http://127.0.0.1:4000/v1 ${keys}my-key`
}

function parseBase(address: string, usage: string): string {
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(address) || !URL.canParse(address))
    throw new PlainError(`${address} is no address such as http://127.0.0.1:4000/v1. ${usage}`)
  const base = address.replace(/(?:\/pets)?\/*$/, '')
  return base.endsWith('/v1') ? base : `${base}/v1`
}

/** Finds out where the operations are and how the key is taken, so that a mistake there does not hide all others. */
async function reach(client: Client, keySource: string): Promise<void> {
  const { base } = client
  let answer = await client.list().catch(async (error: unknown) => {
    throw error instanceof NoAnswer ? new PlainError(await explain(base, error)) : error
  })
  // Some servers take HTTP there, to say that it is none.
  if (answer.status === 400 && (await speaksTls(base)))
    throw new PlainError(`${new URL(base).origin} ${isTls}`)
  // A server may look at the path first or at the key.
  if (answer.status === 404) answer = await findOtherAddress(client, answer)
  if (answer.status === 401 || answer.status === 403) {
    answer = await findOtherKeyForm(client, answer, keySource)
    if (answer.status === 404 && client.base === base) await findOtherAddress(client, answer)
  }
  // So that a slow server is known to be slow.
  for (const _ of [1, 2]) await client.list().catch(() => {})
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
async function explain(base: string, { reason, code, isLate, isUnreachable }: NoAnswer): Promise<string> {
  const { protocol, origin } = new URL(base)
  if (protocol === 'https:' && /^(?:EPROTO|ERR_SSL)/.test(code))
    return `${origin} does not speak TLS. Is it http:// and not https://?`
  // An alert of TLS begins with U+0015.
  if (code === 'NOT_HTTP' && !reason.includes('"U+0015')) return `${origin} does not speak HTTP: ${reason}.`
  if (!isUnreachable && !isLate && (await speaksTls(base))) return `${origin} ${isTls}`
  if (isLate) return `${origin} takes a connection, but does not respond: ${reason}.`
  return `${base} does not respond: ${reason}. Is your server running, and is this its address?`
}

const isTls = 'speaks TLS. Is it https:// and not http://?'

/** Whether there is TLS at an address of http. */
function speaksTls(base: string): Promise<boolean> {
  const { protocol, hostname, port } = new URL(base)
  if (protocol === 'https:') return Promise.resolve(false)
  return new Promise((resolve) => {
    const host = hostname.replaceAll(/[[\]]/g, '')
    const socket = connectTls({ host, port: Number(port) || 80, rejectUnauthorized: false, timeout: 2000 })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('secureConnect', () => end(true))
    socket.on('timeout', () => end(false))
    // An alert of the other side is TLS, too. What is no TLS at all gives a wrong version.
    socket.on('error', (error) => end(/alert/i.test(error.message)))
    socket.on('close', () => end(false))
  })
}
