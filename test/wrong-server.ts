/**
 * A small pet store in memory that keeps the interface, and can be made to break it in one place: what the contract suite is
 * tried against. It shares no code with the service, so that a fault of the service cannot hide in both.
 */
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Client, createClient } from './contract-client.ts'
import { isStatus } from './contract-expect.ts'
import { isInt64, isObject, parseExactJson } from './contract-json.ts'
import { type Delivery, LateError, type Request } from './contract-wire.ts'

export interface Pet {
  id: bigint
  name: string
  categoryId: bigint
  status?: string
}

export interface Reply {
  /** 0 drops the connection; -1 never responds. */
  status: number
  type: string
  text: string
}

export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  authorization: string
  body: string
  /** Their names are as they were sent. */
  headers: Readonly<Record<string, string>>
  delivery: Delivery
}

/** The places where a server can be made another one. */
export interface Behaviour {
  isAuthorized(asked: Asked, key: string): boolean
  /** What a request without a valid key gets. */
  refuseKey(pets: Pet[], asked: Asked): Reply
  /** The page size for what `limit` says (null: nothing); undefined refuses it. */
  readLimit(limit: string | null): number | undefined
  /** The pets that a filter lets through (null: no filter); undefined refuses it. */
  filter(pets: Pet[], status: string | null): Pet[] | undefined
  /** Whether the first list with this query is given again and again. */
  keepsList(query: URLSearchParams): boolean
  /** Undefined refuses the body. */
  readNewPet(body: Record<string, unknown>, pets: Pet[]): Omit<Pet, 'id'> | undefined
  newId(pets: Pet[], body: Record<string, unknown>): bigint
  save(pets: Pet[], pet: Pet): void
  /** The pet that a petId names; a number refuses it with that status. */
  find(pets: Pet[], petId: string): Pet | number
  malformed(): Reply
  /** What is read of a body that came over HTTP in these packets. */
  readBody(packets: readonly Buffer[]): Buffer
  /** An operation that the interface does not give. */
  other(pets: Pet[], asked: Asked): Reply
  /** Has the last word on every answer. */
  rewrite(reply: Reply, asked: Asked): Reply
}

export const reference: Behaviour = {
  isAuthorized: ({ authorization }, key) => authorization === `Bearer ${key}`,
  refuseKey: () => refuse(401),
  readLimit(limit) {
    if (limit === null) return 20
    return /^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= 100 ? Number(limit) : undefined
  },
  filter(pets, status) {
    if (status === null) return pets
    return isStatus(status) ? pets.filter((pet) => pet.status === status) : undefined
  },
  keepsList: () => false,
  readNewPet({ name, categoryId, status = 'available' }) {
    if (typeof name !== 'string' || !isInt64(categoryId) || !isStatus(status)) return undefined
    return { name, categoryId, status }
  },
  newId: (pets) => (pets.at(-1)?.id ?? 0n) + 1n,
  save: (pets, pet) => void pets.push(pet),
  find: (pets, petId) => pets.find(({ id }) => String(id) === petId) ?? 404,
  malformed: () => refuse(400),
  readBody: (packets) => Buffer.concat(packets),
  other: () => refuse(404),
  rewrite: (answer) => answer,
}

/** Gives the server's reply to a request. */
export type Operate = (asked: Asked) => Reply

/** A store with these pets, changed in some places. It takes requests from whatever delivers them. */
export function createStore(key: string, change: Partial<Behaviour> = {}, pets: Pet[] = []): Operate {
  const behaviour = { ...reference, ...change }
  const kept = new Map<string, Reply>()
  return (asked) => behaviour.rewrite(operate(behaviour, key, pets, kept, asked), asked)
}

function operate(
  behaviour: Behaviour,
  key: string,
  pets: Pet[],
  kept: Map<string, Reply>,
  asked: Asked,
): Reply {
  const petId = /^\/v1\/pets\/([^/]+)$/.exec(asked.path)?.[1]
  if (!behaviour.isAuthorized(asked, key)) return behaviour.refuseKey(pets, asked)
  if (asked.method === 'GET' && petId !== undefined) return getPet(behaviour, pets, petId)
  if (asked.method === 'GET' && asked.path === '/v1/pets') {
    const query = String(asked.query)
    const list = kept.get(query) ?? listPets(behaviour, pets, asked.query)
    if (behaviour.keepsList(asked.query)) kept.set(query, list)
    return list
  }
  if (asked.method === 'POST' && asked.path === '/v1/pets') return createPet(behaviour, pets, asked.body)
  return behaviour.other(pets, asked)
}

/** A client that calls a store in this process: HTTP itself is not what breaks in it. */
export function connect(key: string, store: Operate): Client {
  return createClient('http://store/v1', key, async (request) => {
    const { status, type, text } = store(parseRequest(request))
    if (status === 0) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
    if (status === -1) throw new LateError(10_000)
    return { status, phrase: STATUS_CODES[status] ?? '', contentType: type, text }
  })
}

export interface WrongServer {
  /** Ends in /v1. */
  url: string
  close(): Promise<void>
}

/** The same over HTTP, on a free port. */
export async function startServer(
  key: string,
  change: Partial<Behaviour> = {},
  pets: Pet[] = [],
): Promise<WrongServer> {
  const store = createStore(key, change, pets)
  const { readBody } = { ...reference, ...change }
  const server = createServer((request, response) => void answerRequest(store, readBody, request, response))
  // On Linux an address of its own: when the server is gone, no server of another test may get its port.
  const host = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  // A server that listens on a port has an address of this form (Node's documentation of server.address).
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}/v1`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

async function answerRequest(
  store: Operate,
  readBody: Behaviour['readBody'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const packets: Buffer[] = []
  for await (const packet of request) packets.push(packet)
  const { method = '', url = '', rawHeaders, headers: named } = request
  const headers: Record<string, string> = {}
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers[rawHeaders[index] ?? ''] = rawHeaders[index + 1] ?? ''
  const body = readBody(packets).toString()
  const delivery = named['transfer-encoding'] === undefined ? 'whole' : 'chunks'
  const { status, type, text } = store(parseRequest({ method, address: url, headers, body, delivery }))
  if (status === 0) response.destroy()
  else if (status > 0) response.writeHead(status, { 'Content-Type': type }).end(text)
}

/** Its address is a path with its query, or a whole address. */
export function parseRequest({ method, address, headers, body = '', delivery }: Request): Asked {
  const { pathname, searchParams } = new URL(address, 'http://store')
  // A header's value loses the spaces around it on its way (RFC 9110 5.5).
  const authorization = (headers['Authorization'] ?? headers['authorization'] ?? '').trim()
  return { method, path: pathname, query: searchParams, authorization, body, headers, delivery }
}

function listPets({ readLimit, filter }: Behaviour, pets: Pet[], query: URLSearchParams): Reply {
  const limit = readLimit(query.get('limit'))
  const matches = filter(pets, query.get('status'))
  if (limit === undefined || matches === undefined) return refuse(400)
  return reply(200, `[${matches.slice(0, limit).map(formatPet).join(',')}]`)
}

function createPet(behaviour: Behaviour, pets: Pet[], text: string): Reply {
  let body: unknown
  try {
    body = parseExactJson(text)
  } catch {
    return behaviour.malformed()
  }
  const values = isObject(body) ? behaviour.readNewPet(body, pets) : undefined
  if (values === undefined || !isObject(body)) return refuse(400)
  const pet = { id: behaviour.newId(pets, body), ...values }
  behaviour.save(pets, pet)
  return reply(201, formatPet(pet))
}

function getPet({ find }: Behaviour, pets: Pet[], petId: string): Reply {
  const found = find(pets, petId)
  return typeof found === 'number' ? refuse(found) : reply(200, formatPet(found))
}

export function reply(status: number, text: string): Reply {
  return { status, type: 'application/json', text }
}

export function refuse(status: number): Reply {
  return reply(
    status,
    JSON.stringify({ code: `refused_${status}`, message: `This is a refusal ${status}.`, status }),
  )
}

export function formatPet({ id, name, categoryId, status }: Pet): string {
  const state = status === undefined ? '' : `,"status":${JSON.stringify(status)}`
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId}${state}}`
}
