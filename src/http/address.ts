/** Where our server listens: its address as a URL, and what a person is told if it cannot listen there. */
import { errorCode } from '../system/errors.ts'

/**
 * Returns a server's address as a URL for a client on this machine. One that listens on all addresses
 * (`0.0.0.0`, `::`) is reached by the loopback address of IPv4: `::` accepts it as well, and a machine may
 * have no IPv6. The `%` before a zone is escaped (RFC 6874), as curl expects it.
 */
export function formatUrl(address: string, port: number | string): string {
  const reachable = ['0.0.0.0', '::'].includes(address) ? '127.0.0.1' : address.replace('%', '%25')
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/**
 * The server cannot listen. The sentence begins with what to change, `port` or `host`, or says what to use
 * instead.
 */
export class ListenError extends Error {
  /** The system's code, such as EADDRINUSE; empty on Bun. */
  readonly code: string
  constructor(sentence: string, cause: unknown) {
    super(sentence, { cause })
    this.code = errorCode(cause)
  }
}

/** Returns a ListenError if it is known what a person can change, otherwise the error as it is. */
export function toListenError(error: unknown, port: number, host: string): unknown {
  const unknownHost = `host: ${host} could not be looked up; give an address, such as 0.0.0.0 for all addresses of this machine`
  const sentences: Partial<Record<string, string>> = {
    EADDRINUSE: `port: ${port} is taken by another program on ${host}; stop that program, or choose another port`,
    EACCES:
      port < 1024
        ? `port: ${port} needs a privilege that this user does not have; choose a port from 1024 on`
        : // Windows sets ranges of ports aside (netsh interface ipv4 show excludedportrange protocol=tcp).
          `port: ${port} is reserved by the system; choose another port`,
    EAFNOSUPPORT: `host: ${host} is an address of IPv6, which this system does not have; 0.0.0.0 listens on all of its addresses`,
    EINVAL: /^fe[89ab]/i.test(host)
      ? `host: ${host} is a link-local address, which needs an interface of this machine behind it, such as ${host.replace(/%.*/, '')}%eth0`
      : undefined,
    EADDRNOTAVAIL: `host: ${host} is not an address of this machine; 0.0.0.0 listens on all of its addresses`,
    ENOTFOUND: unknownHost,
    EAI_AGAIN: unknownHost,
  }
  const sentence = sentences[errorCode(error)]
  return sentence === undefined ? error : new ListenError(sentence, error)
}

/** Throws a ListenError on Bun, whose `node:http` is not Node's. */
export function refuseBun(): void {
  const sentence =
    'Bun does not run the server of Petstore: pass the fetch of createPetStore to Bun.serve, or start it with Node'
  if (process.versions['bun'] !== undefined) throw new ListenError(sentence, undefined)
}
