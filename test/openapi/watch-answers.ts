/**
 * Loaded before the tests (`node --import`), it holds every answer that the service gives in a process against the document,
 * and leaves what it found in the folder `ANSWERS_FOLDER`. The service does not know: it is watched from outside.
 */
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { judge, type ReceivedAnswer } from './answers.ts'

/** What a process leaves: how often it saw each kind of answer, and what was wrong with some. */
export interface Findings {
  readonly counts: Readonly<Record<string, number>>
  readonly faults: readonly string[]
}

const folder = process.env['ANSWERS_FOLDER']
const counts: Record<string, number> = {}
const faults: string[] = []

// The messages are what Node's documentation of the channels says.
subscribe('http.server.request.start', (message) => {
  const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
  watchResponse(request, response)
})
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket }
  watchSocket(socket)
})
process.on('exit', () => {
  if (folder === undefined || Object.keys(counts).length === 0) return
  const findings: Findings = { counts, faults }
  writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(findings))
})

function watchResponse(request: IncomingMessage, response: ServerResponse): void {
  const { method = '', url = '' } = request
  const { writeHead, write, end } = response
  let head: { status: number; headers: readonly string[] } | undefined
  let body: string | undefined
  response.writeHead = (status: number, ...rest: readonly unknown[]) => {
    // Other servers in the tests answer too; only the service's answers carry this, in a flat list.
    const [headers] = rest
    if (Array.isArray(headers) && headers.includes('nosniff')) head = { status, headers }
    return Reflect.apply(writeHead, response, [status, ...rest])
  }
  response.write = (...rest: readonly unknown[]) => {
    body = (body ?? '') + (textOf(rest[0]) ?? '')
    return Reflect.apply(write, response, rest)
  }
  response.end = (...rest: readonly unknown[]) => {
    if (head !== undefined) note({ request: { method, target: url }, ...head, body: body ?? textOf(rest[0]) })
    return Reflect.apply(end, response, rest)
  }
}

/** The service writes its answer to an unreadable request on the socket, whole. */
function watchSocket(socket: Socket): void {
  const { end } = socket
  socket.end = (...rest: readonly unknown[]) => {
    const [head = '', body] = (textOf(rest[0]) ?? '').split('\r\n\r\n')
    const [start = '', ...lines] = head.split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(start)?.[1])
    const headers = lines.flatMap((line) => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ])
    if (headers.includes('nosniff')) note({ request: undefined, status, headers, body })
    return Reflect.apply(end, socket, rest)
  }
}

function note(answer: ReceivedAnswer): void {
  const verdict = judge(answer)
  counts[verdict.label] = (counts[verdict.label] ?? 0) + 1
  const { method, target } = answer.request ?? { method: 'an unreadable', target: 'request' }
  faults.push(
    ...verdict.faults.map((fault) => `${method} ${target}: ${answer.status} (${verdict.label}): ${fault}`),
  )
}

function textOf(value: unknown): string | undefined {
  return value instanceof Uint8Array
    ? Buffer.from(value).toString()
    : typeof value === 'string'
      ? value
      : undefined
}
