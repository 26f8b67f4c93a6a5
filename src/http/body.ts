/** The body of a request: collected as it arrives, and read as JSON. */
import buffer from 'node:buffer'
import type { Readable } from 'node:stream'
import { byteOrderMarkLength, JsonFault, parseJson, lineAndColumnOf } from '../json/json.ts'
import { EmbeddingError } from '../system/errors.ts'
import { describe } from '../text/words.ts'
import { maxBodyBytes } from './limits.ts'
import { HttpError } from './response.ts'

/** A request as far as its body is concerned. */
export interface RequestWithBody {
  /** By their names in small letters. */
  readonly headers: Readonly<NodeJS.Dict<string>>
  /** Returns whether a header came in several lines, of which `headers` may have the first only. */
  readonly isRepeated: (name: string) => boolean
  readonly body: RequestBody
  /** Sends 100 Continue if the client waits for it. To be called before the body is read. */
  askForBody?: (() => void) | undefined
}

/** The client went before there was anything to respond to. */
export const clientGone = new Error('the client has gone')

const whatToSend =
  'send plain JSON with "Content-Type: application/json" (curl: -H \'Content-Type: application/json\')'

const lostQuotesHint =
  '; the shell may have taken the quotes away: put the body into a file, and send it with curl -d @pet.json'

export const readBefore = 'the body was read before'

/** The charset has to be UTF-8 (RFC 8259 section 8.1). Other parameters do not matter. */
const jsonType = /^application\/json\s*(?:;(?!\s*charset=)[^;]*)*(?:;\s*charset="?utf-?8"?\s*(?:;.*)?)?$/i

export function bodyTooLarge(): HttpError {
  return new HttpError('content_too_large', `The body is larger than ${maxBodyBytes} bytes.`)
}

/** Rejects with an HttpError, or as RequestBody.read does. */
export async function readBody(request: RequestWithBody): Promise<unknown> {
  if (request.body.stopReason !== undefined) throw request.body.stopReason
  checkBodyHead(request)
  request.askForBody?.()
  request.askForBody = undefined
  return parseBody(await request.body.read())
}

/** Throws where the head is enough to refuse the body. */
function checkBodyHead({ headers, isRepeated }: RequestWithBody): void {
  const { 'content-type': type = 'application/json', 'content-encoding': encoding } = headers
  if (isRepeated('content-type'))
    throw new HttpError('unsupported_media_type', `Content-Type: is given more than once; ${whatToSend}`)
  if (!jsonType.test(type)) {
    const fault = `Content-Type: expected application/json, got ${describe(type)}`
    throw new HttpError('unsupported_media_type', `${fault}; ${whatToSend}`)
  }
  if (encoding !== undefined) {
    const fault = `Content-Encoding: expected none, got ${describe(encoding)}`
    throw new HttpError('unsupported_media_type', `${fault}; ${whatToSend}`, {
      headers: ['Accept-Encoding', 'identity'],
    })
  }
  if (Number(headers['content-length'] ?? 0) > maxBodyBytes) throw bodyTooLarge()
}

/** Throws malformed_json. */
function parseBody(bytes: Buffer): unknown {
  const text = bytes.subarray(byteOrderMarkLength(bytes))
  if (text.length === 0) throw new HttpError('malformed_json', 'body: is empty; expected a JSON object')
  if (!buffer.isUtf8(text)) throw new HttpError('malformed_json', 'body: is not UTF-8')
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error
    const { line, column } = lineAndColumnOf(text, error.offset)
    // A shell makes this of `curl -d {"name":"Rex"}`.
    const hint = /^\s*\{\s*\w/.test(text.toString()) ? lostQuotesHint : ''
    throw new HttpError('malformed_json', `body: line ${line}, column ${column}: ${error.message}${hint}`)
  }
}

const noBytes = Buffer.alloc(0)

/** The body of a request: the core reads it; the core and the door can stop it. */
export class RequestBody {
  /** Why the body was stopped last: an operation that has not read it by then does not act. */
  stopReason: Error | undefined
  #bytes: Promise<Buffer> | undefined
  #fail: (reason: Error) => void = () => {}
  readonly #begin: (body: RequestBody) => Promise<Buffer>

  /** `begin` is called by the first `read`. A stop ends it only within `collect`. */
  constructor(begin: (body: RequestBody) => Promise<Buffer>) {
    this.#begin = begin
  }

  /**
   * Rejects with an HttpError, with clientGone if the body never ended, with the reason of a stop, or with an
   * EmbeddingError.
   */
  read(): Promise<Buffer> {
    return (this.#bytes ??= this.#begin(this))
  }

  /** Makes `read` reject while `collect` waits for the rest of the body. */
  stop(reason: Error): void {
    this.stopReason = reason
    this.#fail(reason)
  }

  /**
   * A client may send a body in chunks of one byte, for each of which Node keeps a Buffer of some 400 bytes
   * until it is read. So each is taken as it is parsed, and copied into one buffer.
   */
  collect(stream: Readable): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      // An app may have read an empty body, which has then ended, but gave no data.
      const isRead = stream.readableDidRead || stream.readableEnded
      if (isRead || typeof stream.readableEncoding === 'string') {
        const fault = isRead ? readBefore : 'the body was given an encoding before'
        throw new EmbeddingError(`${fault}; mount the listener ahead of body parsers such as express.json()`)
      }
      let bytes: Buffer = noBytes
      let size = 0
      let hasFailed = false
      const fail = (reason: Error): void => {
        hasFailed = true
        bytes = noBytes
        reject(reason)
      }
      this.#fail = fail
      const failGone = (): void => fail(clientGone)
      stream.on('data', (part: string | Uint8Array) => {
        // What still comes is dropped: a client that is cut off while it sends may never see the response.
        if (hasFailed) return
        // Some adapters give text, or plain bytes.
        const chunk = Buffer.isBuffer(part) ? part : Buffer.from(part)
        const start = size
        size += chunk.length
        if (size > maxBodyBytes) return fail(bodyTooLarge())
        if (start === 0) bytes = chunk
        if (size > bytes.length) bytes = Buffer.concat([bytes], Math.max(size, 2 * bytes.length))
        if (start > 0) chunk.copy(bytes, start)
      })
      // In HTTP/2, 'end' comes behind 'aborted', as if the body were whole.
      for (const event of ['aborted', 'error', 'close']) stream.on(event, failGone)
      stream.on('end', () => resolve(bytes.subarray(0, size)))
      // Until the first read, Node keeps what it has parsed, in spite of the listener (addChunk in
      // https://github.com/nodejs/node/blob/main/lib/internal/streams/readable.js).
      stream.read(0)
    })
  }
}
