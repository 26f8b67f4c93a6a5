/** The load: keep-alive connections over plain sockets, each sending its next request when the last answer is whole. */
import { connect, type Socket } from 'node:net'
import { readMachineCpuSeconds, readUsage, type Usage } from './usage.ts'

/** A request as the bytes on the wire, and the status that is the right answer to it. */
export interface Request {
  bytes: Buffer
  status: number
}

export interface Answer {
  status: number
  /** `Name: value`, as sent. */
  headers: string[]
  body: string
}

export interface Load {
  port: number
  /** Sent in turn, each connection starting at another place of the list. */
  requests: Request[]
  connections: number
  /** Unmeasured time before the window, so that every connection is busy when it opens. */
  leadMs?: number
  /** How long the window is open, or how many answers it takes to close it. */
  window: { ms: number } | { answers: number }
  /** The process whose use of the processor is read with the window. */
  pid?: number
}

export interface LoadResult {
  /** Answers in the window. */
  answers: number
  /** Answers in all, those before and after the window included. */
  allAnswers: number
  seconds: number
  /** Time from sending a request to its whole answer, for every answer of the window. */
  latenciesMs: number[]
  /** What server and client spent of the processor in the window; null where the system does not tell. */
  serverUsage: Usage | null
  clientUsage: Usage | null
  /** Processor time that others than the two used in the window: about none on a quiet machine. */
  foreignCpuSeconds: number | null
}

/** A request with what a plain client sends: Host, the key, and for a body its type and length. */
export function createRequest(
  method: string,
  target: string,
  options: { key?: string; body?: string; status?: number } = {},
): Request {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Accept: */*']
  if (options.key !== undefined) lines.push(`Authorization: Bearer ${options.key}`)
  if (options.body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(options.body)}`)
  }
  return {
    bytes: Buffer.from(`${lines.join('\r\n')}\r\n\r\n${options.body ?? ''}`),
    status: options.status ?? 200,
  }
}

// One buffer serves all connections: a read is taken in whole before the next one starts.
const readBuffer = Buffer.allocUnsafe(256 * 1024)

/** One connection. Reads only as much of an answer as it takes to know its status and its end. */
class Connection {
  readonly #socket: Socket
  #partialHead: Buffer | null = null
  #missingBytes = 0
  #status = 0
  onResponse: (status: number) => void = () => {}

  constructor(port: number, opened: () => void, failed: (error: Error) => void) {
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      // Reads that bypass the stream machinery keep the client well below the server's cost.
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          try {
            this.#take(readBuffer.subarray(0, length))
          } catch (error) {
            failed(error instanceof Error ? error : new Error(String(error)))
          }
          return true
        },
      },
    })
    this.#socket.once('connect', opened)
    this.#socket.on('error', failed)
    this.#socket.on('close', () => failed(new Error('the server closed a connection under load')))
  }

  send(request: Request): void {
    this.#socket.write(request.bytes)
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    if (this.#missingBytes > 0) {
      this.#missingBytes -= chunk.length
    } else {
      const bytes = this.#partialHead === null ? chunk : Buffer.concat([this.#partialHead, chunk])
      const headLength = bytes.indexOf('\r\n\r\n')
      if (headLength === -1) {
        this.#partialHead = Buffer.from(bytes)
        return
      }
      this.#partialHead = null
      const head = bytes.toString('latin1', 0, headLength)
      const bodyLength = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      if (bodyLength === undefined) throw new Error(`an answer without Content-Length:\n${head}`)
      this.#status = Number(head.slice(9, 12))
      this.#missingBytes = headLength + 4 + Number(bodyLength) - bytes.length
    }
    if (this.#missingBytes < 0) throw new Error('an answer is longer than its Content-Length')
    if (this.#missingBytes === 0) this.onResponse(this.#status)
  }
}

async function openConnections(count: number, port: number, failed: (error: Error) => void) {
  const opening = Array.from({ length: count }, () => {
    const { promise, resolve, reject } = withResolvers<Connection>()
    const connection = new Connection(
      port,
      () => resolve(connection),
      (error) => {
        reject(error)
        failed(error)
      },
    )
    return promise
  })
  return await Promise.all(opening)
}

/** Promise.withResolvers, which Node 20 lacks. */
function withResolvers<T>() {
  let resolve!: (value: T) => void
  let reject!: (error: Error) => void
  const promise = new Promise<T>((resolveIt, rejectIt) => {
    resolve = resolveIt
    reject = rejectIt
  })
  return { promise, resolve, reject }
}

/**
 * Applies the load and waits until every answer is in. Rejects when a status is not the expected one, when a connection
 * fails, or when the server does not answer for 30 s.
 */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const { requests, window } = load
  const { promise, resolve, reject } = withResolvers<void>()
  // A connection can fail before anything awaits this.
  promise.catch(() => {})
  const connections = await openConnections(load.connections, load.port, reject)
  const result: LoadResult = {
    answers: 0,
    allAnswers: 0,
    seconds: 0,
    latenciesMs: [],
    serverUsage: null,
    clientUsage: null,
    foreignCpuSeconds: null,
  }
  let phase: 'lead' | 'window' | 'ending' = 'lead'
  let openedAt = 0
  let waiting = connections.length
  let usageBefore: ReturnType<typeof readAll>

  const readAll = () => ({
    server: load.pid === undefined ? null : readUsage(load.pid),
    client: readUsage(process.pid),
    machineCpuSeconds: readMachineCpuSeconds(),
  })
  const openWindow = () => {
    usageBefore = readAll()
    phase = 'window'
    openedAt = performance.now()
    if ('ms' in window) setTimeout(closeWindow, window.ms)
  }
  const closeWindow = () => {
    result.seconds = (performance.now() - openedAt) / 1000
    phase = 'ending'
    const usageAfter = readAll()
    result.serverUsage = difference(usageAfter.server, usageBefore.server)
    result.clientUsage = difference(usageAfter.client, usageBefore.client)
    if (usageAfter.machineCpuSeconds !== null && result.serverUsage !== null && result.clientUsage !== null) {
      const allCpuSeconds = usageAfter.machineCpuSeconds - (usageBefore.machineCpuSeconds ?? 0)
      result.foreignCpuSeconds = allCpuSeconds - result.serverUsage.cpuSeconds - result.clientUsage.cpuSeconds
    }
  }

  for (const [number, connection] of connections.entries()) {
    let next = Math.floor((number * requests.length) / connections.length)
    let expected = 0
    let sentAt = 0
    const send = () => {
      // `next` stays below the length, which is not zero.
      const request = requests[next] as Request
      next = (next + 1) % requests.length
      expected = request.status
      sentAt = performance.now()
      connection.send(request)
    }
    connection.onResponse = (status) => {
      result.allAnswers += 1
      if (status !== expected) {
        reject(new Error(`answered ${status} where ${expected} is right`))
        return
      }
      if (phase === 'window') {
        result.answers += 1
        result.latenciesMs.push(performance.now() - sentAt)
        if ('answers' in window && result.answers === window.answers) closeWindow()
      }
      if (phase !== 'ending') send()
      else if (--waiting === 0) resolve()
    }
    send()
  }

  let lastCount = -1
  const watchdog = setInterval(() => {
    if (result.allAnswers === lastCount) reject(new Error('no answer for 30 s'))
    lastCount = result.allAnswers
  }, 30_000)
  const leadTimer = setTimeout(openWindow, load.leadMs ?? 0)
  try {
    await promise
  } finally {
    clearInterval(watchdog)
    clearTimeout(leadTimer)
    for (const connection of connections) connection.close()
  }
  return result
}

function difference(after: Usage | null, before: Usage | null): Usage | null {
  if (after === null || before === null) return null
  return {
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    mainThreadSeconds: after.mainThreadSeconds - before.mainThreadSeconds,
  }
}

/** Sends the bytes of one request over a connection of its own and reads the whole answer. */
export async function ask(port: number, { bytes }: Pick<Request, 'bytes'>): Promise<Answer> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setTimeout(30_000, () => socket.destroy(new Error('no answer for 30 s')))
  socket.write(bytes)
  let text = ''
  try {
    for await (const chunk of socket.setEncoding('latin1')) {
      text += chunk
      const headLength = text.indexOf('\r\n\r\n')
      if (headLength === -1) continue
      const [statusLine = '', ...headers] = text.slice(0, headLength).split('\r\n')
      const bodyLength = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, headLength))?.[1])
      const body = text.slice(headLength + 4)
      if (body.length < bodyLength) continue
      return {
        status: Number(statusLine.slice(9, 12)),
        headers,
        body: Buffer.from(body, 'latin1').toString(),
      }
    }
  } finally {
    socket.destroy()
  }
  throw new Error(`the connection ended without a whole answer: ${JSON.stringify(text)}`)
}

/** The value of a header of an answer, or undefined. */
export function headerOf(answer: Answer, name: string): string | undefined {
  const prefix = `${name.toLowerCase()}: `
  return answer.headers.find((line) => line.toLowerCase().startsWith(prefix))?.slice(prefix.length)
}
