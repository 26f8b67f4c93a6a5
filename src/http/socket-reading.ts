/**
 * Decides when a client's socket is read, and how much of it is parsed at once. What is parsed, and why it may have to wait, is for
 * connection.ts.
 */
import type { Socket } from 'node:net'

/** How much of a connection is parsed at once under overload: some dozens of requests at most. */
const sliceBytes = 1_024

export interface SocketReading {
  /** Pauses or resumes the socket. Is called whenever `mustPause` may have changed. */
  update(): void
  /**
   * Node parses everything that it reads (up to 64 KiB, thousands of requests) in one go, even if the socket is paused meanwhile. From
   * now on its parser gets 1 KiB at a time, and nothing while the socket is paused. This makes each read slower, so a connection is
   * switched only under overload; it then stays so until it closes.
   *
   * Test: "clients that send ahead of their responses are all answered, also past the limit for all of them".
   */
  readInSlices(): void
}

/** What it asks of the connection. */
interface Gate {
  readonly mustPause: boolean
  readonly hasStoppedParsing: boolean
}

export function createSocketReading(socket: Socket, gate: Gate): SocketReading {
  /** From a 'resume' event to the next pause. Only then has pause() an effect: not yet between a call of resume() and its event. */
  let isReading = false
  let isSliced = false

  function update(): void {
    const { mustPause } = gate
    if (mustPause && isReading) socket.pause()
    if (!mustPause && socket.isPaused()) socket.resume()
  }

  /** Puts a 'data' listener of ours in the place of Node's, which parses; ours calls that with one slice after the other. */
  function takeOver(): void {
    // Node never reads a socket again whose listeners are changed while it is not being read.
    if (!isReading) return void socket.once('resume', takeOver)
    // There is none after a CONNECT. Node's types say only that it is a function.
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (parse === undefined) return
    socket.on('data', (bytes: Buffer) => parseInSlices(bytes, parse))
    socket.off('data', parse)
  }

  function parseInSlices(bytes: Buffer, parse: (bytes: Buffer) => void): void {
    for (let start = 0; start < bytes.length; start += sliceBytes) {
      if (gate.hasStoppedParsing || !socket.writable) return
      if (gate.mustPause) {
        // The rest comes as 'data' again when the socket is resumed.
        socket.pause()
        socket.unshift(bytes.subarray(start))
        return
      }
      parse(bytes.subarray(start, start + sliceBytes))
    }
  }

  socket.on('drain', update)
  // Node resumes the socket by itself, for example after each request that it has parsed. It is then paused again if need be.
  socket.on('resume', () => {
    // Node's own listener, which is called first, pauses the socket again while there is too much to be sent.
    isReading = !socket.isPaused()
    if (isReading) update()
  })
  socket.on('pause', () => {
    isReading = false
  })

  return {
    update,
    readInSlices() {
      if (!isSliced) takeOver()
      isSliced = true
    },
  }
}
