/** Whether a server can listen at an address and, if not, why, in a sentence that names the setting to change. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { errorCode } from '../system/errors.ts'

export class ListenError extends Error {
  /** The system's, such as EADDRINUSE. */
  readonly code: string
  constructor(sentence: string, cause: unknown) {
    super(sentence, { cause })
    this.code = errorCode(cause)
  }
}

/** Listens there for a moment. Throws what explainListenError makes of the system's error. */
export async function checkAddress(port: number, host: string): Promise<void> {
  const server = createServer().listen({ port, host })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw explainListenError(error, port, host)
  }
  await once(server.close(), 'close')
}

/** A ListenError if it is known what a person can change; otherwise the error as it is. */
export function explainListenError(error: unknown, port: number, host: string): unknown {
  const unknownHost = `HOST: ${host} could not be looked up; give an address, such as 0.0.0.0 for all addresses of this machine`
  const sentences: Partial<Record<string, string>> = {
    EADDRINUSE: `PORT: ${port} is taken by another program on ${host}; stop that program, or choose another port`,
    EACCES:
      port < 1024
        ? `PORT: ${port} needs a privilege that this user does not have; choose a port from 1024 on`
        : // Windows sets ranges of ports aside (netsh interface ipv4 show excludedportrange protocol=tcp).
          `PORT: ${port} is reserved by the system; choose another port`,
    EADDRNOTAVAIL: `HOST: ${host} is not an address of this machine; 0.0.0.0 listens on all of its addresses`,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: unknownHost,
  }
  const sentence = sentences[errorCode(error)]
  return sentence === undefined ? error : new ListenError(sentence, error)
}
