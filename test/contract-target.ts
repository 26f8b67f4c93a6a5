/** The server that the contract suite verifies: the one that the environment names, or one of this project, in memory. */
import { randomBytes } from 'node:crypto'
import { createClient, NoAnswer, PlainError } from './contract-client.ts'

export interface Target {
  /** The base address; it ends in /v1. */
  base: string
  key: string
  /** Which server it is, in a sentence, to be printed first: whoever forgets PETSTORE_URL sees another server pass. */
  words: string
  close(): Promise<void>
}

/** Throws a PlainError that says, in a sentence, why there is no server to verify. */
export async function openTarget(env: NodeJS.ProcessEnv): Promise<Target> {
  const { PETSTORE_URL: address, PETSTORE_API_KEY: key } = env
  if (!address && !key) return startOwnServer()
  if (!address)
    throw new PlainError(
      'PETSTORE_API_KEY is set, but PETSTORE_URL is not: set both to verify a running server, neither to verify this one.',
    )
  if (!key)
    throw new PlainError(
      'PETSTORE_URL is set, but PETSTORE_API_KEY is not: set both to verify a running server, neither to verify this one.',
    )
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new PlainError(
      'PETSTORE_API_KEY has characters that a bearer key cannot have (spaces, or characters beyond ASCII).',
    )
  const base = parseBase(address)
  const target = { base, key, words: `Verifying ${base}`, close: async () => {} }
  await reach(target)
  return target
}

function parseBase(address: string): string {
  if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(address) || !URL.canParse(address))
    throw new PlainError(
      `PETSTORE_URL is ${address}, which is not an address such as http://127.0.0.1:3000/v1.`,
    )
  const base = address.replace(/\/+$/, '')
  return base.endsWith('/v1') ? base : `${base}/v1`
}

async function reach({ base, key }: Target): Promise<void> {
  const answer = await createClient(base, key)
    .list()
    .catch((error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error
      throw new PlainError(
        `${base} does not respond. Is the server running, and is this its base address? Reason: ${error.reason}.`,
      )
    })
  if (answer.status === 401)
    throw new PlainError(
      `${base} refuses the key in PETSTORE_API_KEY. Is it one that the server knows? It responded ${answer.received}`,
    )
}

async function startOwnServer(): Promise<Target> {
  const { startPetStore } = await import('../src/index.ts')
  const key = `Key${randomBytes(12).toString('hex')}`
  const store = await startPetStore({ apiKeys: [key], pets: [], port: 0 })
  const base = `${store.url}/v1`
  const words = `Verifying the bundled service at ${base}, since PETSTORE_URL is not set. To verify yours, set PETSTORE_URL and PETSTORE_API_KEY.`
  return { base, key, words, close: () => store.close() }
}
