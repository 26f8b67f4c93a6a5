/**
 * A disk with a volatile cache, as an NBD server (the protocol is in NetworkBlockDevice/nbd, doc/proto.md): what the machine wrote since
 * its last flush is lost when the power fails, all of it or any half of its sectors. Knows nothing of what is on it.
 */
import { readSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'

const sectorBytes = 512
const commands = { read: 0, write: 1, disconnect: 2, flush: 3 } as const
const optionGo = 7
const replies = { acknowledged: 1, information: 3, unsupported: 0x80000001 } as const
/** HAS_FLAGS and SEND_FLUSH. */
const transmissionFlags = 0b101

type Sectors = Map<number, Buffer>

export class VolatileDisk {
  readonly #image: number
  readonly #bytes: number
  readonly #durable: Sectors = new Map()
  #volatile: Sectors = new Map()
  #socket: Socket | undefined

  /** `image` is the descriptor of the disk's first content, which is only read. */
  constructor(image: number, bytes: number) {
    this.#image = image
    this.#bytes = bytes
  }

  /** The power fails. Each sector that was not flushed is lost, or kept where `isKept` says so. */
  cut(isKept: () => boolean): void {
    // What the machine has sent and nobody has read yet never arrives.
    this.#socket?.destroy()
    for (const [sector, bytes] of this.#volatile) if (isKept()) this.#durable.set(sector, bytes)
    this.#volatile = new Map()
  }

  /** Serves one machine at a time, at a Unix socket. */
  listen(path: string): void {
    const serve = async (socket: Socket): Promise<void> => {
      const read = createReader(socket)
      await this.#shakeHands(socket, read)
      await this.#transmit(socket, read)
    }
    createServer((socket) => {
      this.#socket = socket
      // A machine without power closes nothing in order.
      socket.on('error', () => {})
      void serve(socket).catch((error: unknown) => {
        if (!(error instanceof Ended) && !socket.destroyed) throw error
      })
    })
      .listen(path)
      .unref()
  }

  async #shakeHands(socket: Socket, read: Read): Promise<void> {
    socket.write('NBDMAGICIHAVEOPT\0\x03', 'latin1')
    await read(4)
    for (;;) {
      const head = await read(16)
      await read(head.readUInt32BE(12))
      const option = head.readUInt32BE(8)
      const reply = (type: number, data = Buffer.alloc(0)): void => {
        const answer = Buffer.alloc(20)
        answer.writeBigUInt64BE(0x3e889045565a9n)
        answer.writeUInt32BE(option, 8)
        answer.writeUInt32BE(type, 12)
        answer.writeUInt32BE(data.length, 16)
        socket.write(Buffer.concat([answer, data]))
      }
      if (option === optionGo) {
        const information = Buffer.alloc(12)
        information.writeBigUInt64BE(BigInt(this.#bytes), 2)
        information.writeUInt16BE(transmissionFlags, 10)
        reply(replies.information, information)
        return reply(replies.acknowledged)
      }
      reply(replies.unsupported)
    }
  }

  async #transmit(socket: Socket, read: Read): Promise<void> {
    for (;;) {
      const head = await read(28)
      const command = head.readUInt16BE(6)
      const offset = Number(head.readBigUInt64BE(16))
      const length = head.readUInt32BE(24)
      if (command === commands.disconnect) return void socket.end()
      if (command === commands.write) this.#write(offset, await read(length))
      else if (command === commands.flush) this.#flush()
      const answer = Buffer.alloc(16)
      answer.writeUInt32BE(0x67446698)
      head.copy(answer, 8, 8, 16)
      socket.write(answer)
      if (command === commands.read) socket.write(this.#read(offset, length))
    }
  }

  #read(offset: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    readSync(this.#image, bytes, 0, length, offset)
    for (let done = 0; done < length; done += sectorBytes) {
      const sector = (offset + done) / sectorBytes
      const written = this.#volatile.get(sector) ?? this.#durable.get(sector)
      written?.copy(bytes, done)
    }
    return bytes
  }

  #write(offset: number, bytes: Buffer): void {
    for (let done = 0; done < bytes.length; done += sectorBytes)
      this.#volatile.set((offset + done) / sectorBytes, bytes.subarray(done, done + sectorBytes))
  }

  #flush(): void {
    for (const [sector, bytes] of this.#volatile) this.#durable.set(sector, bytes)
    this.#volatile.clear()
  }
}

/** The next bytes of a connection, so many. Rejects with Ended when it ends before. */
type Read = (length: number) => Promise<Buffer>

class Ended extends Error {}

function createReader(socket: Socket): Read {
  const incoming: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  return async (length) => {
    const chunks: Buffer[] = [rest]
    for (let missing = length - rest.length; missing > 0;) {
      const next = await incoming.next()
      if (next.done === true) throw new Ended()
      chunks.push(next.value)
      missing -= next.value.length
    }
    const all = Buffer.concat(chunks)
    rest = all.subarray(length)
    return all.subarray(0, length)
  }
}
