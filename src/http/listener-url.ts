/** A listener's address as a URL for a client on this machine. */

/** Every address (`0.0.0.0`, `::`) is reached by loopback. */
export function formatUrl(address: string, port: number | string): string {
  const reachable = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
