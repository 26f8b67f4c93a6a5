/** Plain node:http that keeps everything in memory: the same operations, checks and headers as ours, and nothing durable. */
import { createServer } from 'node:http'
import { listen, readPets, setup } from './listen.mjs'
import { createMemoryStore } from './memory-store.mjs'

const store = createMemoryStore(readPets())
const credentials = `Bearer ${setup.key}`
const statuses = new Set(['available', 'pending', 'sold'])
const maxBodyBytes = 65_536

function send(response, status, headers, body) {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

function sendError(response, status, code, message) {
  send(response, status, setup.headers, JSON.stringify({ code, message, status }))
}

function listPets(query, response) {
  const limit = query.get('limit') ?? '20'
  const status = query.get('status') ?? undefined
  const after = query.get('after') ?? '0'
  const isValid =
    /^[1-9]\d?$|^100$/.test(limit) &&
    (status === undefined || statuses.has(status)) &&
    /^(0|[1-9]\d*)$/.test(after)
  if (!isValid) return sendError(response, 400, 'invalid_parameter', 'a parameter is not valid')

  const pets = store.list(Number(limit), status, Number(after))
  const headers = { ...setup.headers, 'X-Total-Count': store.count(status) }
  if (pets.length > Number(limit)) {
    pets.pop()
    const filter = status === undefined ? '' : `&status=${status}`
    headers.Link = `</v1/pets?limit=${limit}${filter}&after=${pets.at(-1).id}>; rel="next"`
  }
  return send(response, 200, headers, JSON.stringify(pets))
}

function getPet(petId, response) {
  const pet = /^[1-9]\d*$/.test(petId) ? store.get(Number(petId)) : undefined
  if (pet === undefined) sendError(response, 404, 'not_found', 'there is no such pet')
  else send(response, 200, setup.petHeaders, JSON.stringify(pet))
}

function createPet(request, response) {
  if (request.headers['content-type'] !== 'application/json')
    return sendError(response, 415, 'unsupported_media_type', 'expected application/json')
  const chunks = []
  let size = 0
  request.on('data', (chunk) => {
    size += chunk.length
    if (size <= maxBodyBytes) chunks.push(chunk)
  })
  return request.on('end', () => {
    if (size > maxBodyBytes) return sendError(response, 413, 'content_too_large', 'the body is too large')
    let newPet
    try {
      newPet = JSON.parse(Buffer.concat(chunks).toString())
    } catch {
      return sendError(response, 400, 'malformed_json', 'the body is not JSON')
    }
    if (!isNewPet(newPet)) return sendError(response, 400, 'invalid_body', 'the pet is not valid')
    const pet = store.add(newPet)
    return send(response, 201, { ...setup.headers, Location: `/v1/pets/${pet.id}` }, JSON.stringify(pet))
  })
}

function isNewPet(value) {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof value.name === 'string' &&
    Number.isSafeInteger(value.categoryId) &&
    (value.status === undefined || statuses.has(value.status))
  )
}

function respond(request, response) {
  if (request.headers.authorization !== credentials)
    return sendError(response, 401, 'unauthorized', 'a key is needed')
  const [path, query] = request.url.split('?')
  if (path === '/v1/pets') {
    if (request.method === 'GET') return listPets(new URLSearchParams(query), response)
    if (request.method === 'POST') return createPet(request, response)
    return sendError(response, 405, 'method_not_allowed', 'the path has no such method')
  }
  if (path.startsWith('/v1/pets/') && request.method === 'GET')
    return getPet(path.slice('/v1/pets/'.length), response)
  return sendError(response, 404, 'not_found', 'there is nothing here')
}

listen(createServer(respond))
