/** This project's service, in memory: what `npm test` verifies. The build leaves it out of the suite that is handed out. */
import { randomBytes } from 'node:crypto'
import { startPetStore } from '../src/index.ts'

export interface OwnServer {
  readonly address: string
  readonly key: string
  close(): Promise<void>
}

export type StartOwnServer = () => Promise<OwnServer>

export const startOwnServer: StartOwnServer | null = async () => {
  const key = `Key${randomBytes(12).toString('hex')}`
  const store = await startPetStore({ apiKeys: [key], pets: [], port: 0 })
  return { address: store.url, key, close: () => store.close() }
}
