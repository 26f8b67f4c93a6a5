/** What the author of a server may look for, by what was expected and received. Knows no case. */
import { type Client, type Finding, NoAnswer } from './contract-client.ts'
import type { Level } from './contract-summary.ts'

const integerHint =
  'JavaScript: JSON.parse rounds it; keep the digits as text or a BigInt. Go: int64, not any. Java, C#: long, not int or double.'

/** In about a line; undefined where the message says it all. */
export function findHint(error: Finding, level: Level, _client: Client): string | undefined {
  const { sent, expected, received } = error
  if (level === 'integers') return integerHint
  // The text behind the words "body" is what was sent.
  const [, body = ''] = /, body (.*)$/s.exec(sent) ?? []
  const isWide = /[^\0-\x7f]/.test(body)
  if (isWide && (/Content-Length/.test(expected) || (error instanceof NoAnswer && error.isLate)))
    return 'is Content-Length counted in characters? It counts bytes, of which ë or 🐾 take several.'
  if (/\b5\d\d [A-Z]/.test(received)) return 'a 5xx says that the server failed: its window may say why.'
  return undefined
}
