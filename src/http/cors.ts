/** Which other origins' pages may read the answers (Fetch standard, CORS protocol). No credentials mode. */

export interface Cors {
  /** The headers of an answer to a page of this origin; undefined when no origin was sent or the request was unreadable. */
  answerHeaders(origin: string | undefined): readonly string[]
  /** The further headers of an answer to OPTIONS. */
  preflightHeaders(allow: string): readonly string[]
}

const exposed = [
  'Access-Control-Expose-Headers',
  'Location, Link, X-Total-Count, Deprecation, Sunset, WWW-Authenticate, Allow',
]

/** `*` for any origin, or the origins themselves, none included. */
export function createCors(origins: '*' | readonly string[]): Cors {
  const preflightHeaders = (allow: string): readonly string[] => [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type',
    'Access-Control-Max-Age',
    '600',
  ]
  if (origins === '*') {
    const headers = ['Access-Control-Allow-Origin', '*', ...exposed]
    return { answerHeaders: () => headers, preflightHeaders }
  }
  if (origins.length === 0) return { answerHeaders: () => [], preflightHeaders: () => [] }
  // The answer depends on the origin, also when it names none (RFC 9110 section 12.5.5).
  const refused = ['Vary', 'Origin']
  const allowed = new Map(
    origins.map((origin) => [origin, ['Access-Control-Allow-Origin', origin, ...exposed, ...refused]]),
  )
  return { answerHeaders: (origin) => allowed.get(origin ?? '') ?? refused, preflightHeaders }
}
