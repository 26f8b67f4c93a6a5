/**
 * The load generator: keep-alive connections over plain sockets, each of which sends its next request when it has the whole
 * response to the one before. A response with another status than the expected one ends the run.
 */
import { connect, type Socket } from 'node:net'
import type { HttpRequest } from './http.ts'
import { readCpuSeconds, readMachineCpuSeconds } from './usage.ts'

/** How long the load is measured: for a time, or for a number of responses. */
export type Window = { ms: number } | { responses: number }

export interface Load {
  port: number
  /** A list that every connection sends in turn, starting at a place of its own; or what gives a connection its next one. */
  requests: HttpRequest[] | ((connection: number) => HttpRequest)
  connections: number
  /** Unmeasured time before the window, so that every connection is busy when it opens. */
  leadMs?: number
  window: Window
  /** The server's process, whose use of the processor is measured. */
  pid?: number
}

export interface LoadResult {
  /** In the window: responses, how long it was open, and how long each response took from its request to its last byte. */
  responses: number
  seconds: number
  latenciesMs: number[]
  /** Processor time in the window, of the server and of all but the server and this process; NaN if the system does not tell. */
  serverCpuSeconds: number
  otherCpuSeconds: number
  /** In all, before and after the window too: responses, and pets that were created. */
  allResponses: number
  created: number
}

// One buffer serves all connections: a chunk is dealt with before the next one is read.
const readBuffer = Buffer.allocUnsafe(256 * 1024)

/** Reads only as much of a response as it takes to know its status and its end. */
class Connection {
  readonly #socket: Socket
  #partialHead: Buffer | undefined
  #missingBodyBytes = 0
  #status = 0
  onResponse: (status: number) => void = () => {}

  constructor(port: number, onOpen: () => void, onError: (error: Error) => void) {
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      // Reading without the stream machinery keeps the generator's cost well below the server's.
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          try {
            this.#readChunk(readBuffer.subarray(0, length))
          } catch (error) {
            onError(error instanceof Error ? error : new Error(String(error)))
          }
          return true
        },
      },
    })
    this.#socket.once('connect', onOpen)
    this.#socket.on('error', onError)
    this.#socket.on('close', () => onError(new Error('the server closed a connection under load')))
  }

  send(request: HttpRequest): void {
    this.#socket.write(request.bytes)
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #readChunk(chunk: Buffer): void {
    if (this.#missingBodyBytes > 0) {
      this.#missingBodyBytes -= chunk.length
    } else {
      const bytes = this.#partialHead === undefined ? chunk : Buffer.concat([this.#partialHead, chunk])
      const headLength = bytes.indexOf('\r\n\r\n')
      if (headLength === -1) {
        this.#partialHead = Buffer.from(bytes)
        return
      }
      this.#partialHead = undefined
      const head = bytes.toString('latin1', 0, headLength)
      const bodyLength = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      if (bodyLength === undefined) throw new Error(`a response without Content-Length:\n${head}`)
      this.#status = Number(head.slice(9, 12))
      this.#missingBodyBytes = headLength + 4 + Number(bodyLength) - bytes.length
    }
    if (this.#missingBodyBytes < 0) throw new Error('a response is longer than its Content-Length')
    if (this.#missingBodyBytes === 0) this.onResponse(this.#status)
  }
}

/**
 * Applies the load in three phases: an unmeasured lead, the window, and the end, in which no more is sent and the last
 * responses are awaited. Rejects when a response is not the expected one, when a connection fails, and when no response
 * comes for 30 s.
 */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const { port, requests, window, pid } = load
  const nextRequest = typeof requests === 'function' ? requests : inTurn(requests, load.connections)
  const finished = withResolvers<void>()
  // A connection can fail before anything awaits this.
  finished.promise.catch(() => {})
  const connections = await Promise.all(
    Array.from({ length: load.connections }, () => openConnection(port, finished.reject)),
  )

  const result = { responses: 0, latenciesMs: [] as number[], allResponses: 0, created: 0 }
  let phase: 'lead' | 'window' | 'end' = 'lead'
  let stopMeter = startMeter(pid)
  let measured = stopMeter()

  const openWindow = () => {
    phase = 'window'
    stopMeter = startMeter(pid)
    if ('ms' in window) setTimeout(closeWindow, window.ms)
  }
  const closeWindow = () => {
    measured = stopMeter()
    phase = 'end'
  }

  let unfinished = connections.length
  for (const [number, connection] of connections.entries()) {
    let request = nextRequest(number)
    let sentAt = 0
    const send = () => {
      sentAt = performance.now()
      connection.send(request)
    }
    connection.onResponse = (status) => {
      if (status !== request.status) {
        const { method, target } = request
        finished.reject(new Error(`${method} ${target}: status ${status} where ${request.status} is right`))
        return
      }
      result.allResponses += 1
      if (status === 201) result.created += 1
      if (phase === 'window') {
        result.responses += 1
        result.latenciesMs.push(performance.now() - sentAt)
        if ('responses' in window && result.responses === window.responses) closeWindow()
      }
      if (phase === 'end') {
        if (--unfinished === 0) finished.resolve()
        return
      }
      request = nextRequest(number)
      send()
    }
    send()
  }

  let lastCount = -1
  const watchdog = setInterval(() => {
    if (result.allResponses === lastCount) finished.reject(new Error('no response for 30 s'))
    lastCount = result.allResponses
  }, 30_000)
  const leadTimer = setTimeout(openWindow, load.leadMs ?? 0)
  try {
    await finished.promise
  } finally {
    clearInterval(watchdog)
    clearTimeout(leadTimer)
    for (const connection of connections) connection.close()
  }
  return { ...result, ...measured }
}

/** The requests one after the other for each connection; the places where they start are spread over the list. */
function inTurn(requests: HttpRequest[], connections: number): (connection: number) => HttpRequest {
  const places = Array.from({ length: connections }, (_, number) =>
    Math.floor((number * requests.length) / connections),
  )
  return (connection) => {
    const place = places[connection] ?? 0
    places[connection] = (place + 1) % requests.length
    const request = requests[place]
    if (request === undefined) throw new Error('a load needs a request')
    return request
  }
}

async function openConnection(port: number, onError: (error: Error) => void): Promise<Connection> {
  const opened = withResolvers<void>()
  const connection = new Connection(port, opened.resolve, (error) => {
    opened.reject(error)
    onError(error)
  })
  await opened.promise
  return connection
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

/** Measures from now until the returned function is called. */
function startMeter(pid: number | undefined) {
  const read = () => ({
    ms: performance.now(),
    server: pid === undefined ? NaN : readCpuSeconds(pid),
    generator: readCpuSeconds(process.pid),
    machine: readMachineCpuSeconds(),
  })
  const before = read()
  return () => {
    const after = read()
    const serverCpuSeconds = after.server - before.server
    const generatorCpuSeconds = after.generator - before.generator
    return {
      seconds: (after.ms - before.ms) / 1000,
      serverCpuSeconds,
      otherCpuSeconds: after.machine - before.machine - serverCpuSeconds - generatorCpuSeconds,
    }
  }
}
