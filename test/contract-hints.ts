/** What the author of a server may look for, by what was expected and received. Knows no case. */
import { type Finding, NoAnswer } from './contract-client.ts'
import type { Level } from './contract-summary.ts'

const integerHint =
  'JavaScript: JSON.parse rounds it; keep the digits as text or a BigInt. Go: int64, not any. Java, C#: long, not int or double.'

/** In about a line; undefined where the message says it all. */
export function findHint(error: Finding, level: Level): string | undefined {
  const { sent, expected, received } = error
  if (level === 'integers' && !/^4\d\d\b/.test(expected) && /\d{9}|\de\+/i.test(received)) return integerHint
  const isWide = /[^\0-\x7f]/.test(sent)
  const isCut = /^a body of \d+ bytes, as Content-Length says$/.test(expected)
  if (isCut || (isWide && error instanceof NoAnswer))
    return 'is Content-Length counted in characters? It counts bytes, of which ë or 🐾 take several.'
  if (/\b5\d\d [A-Z]/.test(received)) return 'a 5xx says that the server failed: its window may say why.'
  return undefined
}
