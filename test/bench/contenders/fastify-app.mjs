/** The three operations in Fastify, with schemas for query, body and answers, over any store. */
import fastify from 'fastify'
import { listen, task } from './listen.mjs'

const status = { type: 'string', enum: ['available', 'pending', 'sold'] }
const newPet = {
  type: 'object',
  required: ['name', 'categoryId'],
  properties: { name: { type: 'string' }, categoryId: { type: 'integer' }, status },
}
const pet = {
  type: 'object',
  required: ['id', 'name', 'categoryId', 'status'],
  properties: { id: { type: 'integer' }, name: { type: 'string' }, categoryId: { type: 'integer' }, status },
}
const querystring = {
  type: 'object',
  properties: { limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 }, status },
}
const params = { type: 'object', properties: { petId: { type: 'integer', minimum: 1 } } }

// Fastify would send `; charset=utf-8` for a type set before; set last, it is sent as it is, and for the least cost.
const { 'Content-Type': contentType, ...headers } = task.headers
const credentials = `Bearer ${task.key}`

/** Serves a store of `list(limit, status)` (with one pet more, if there is), `count(status)`, `get(id)` and `add(pet)`. */
export async function serve(store) {
  const app = fastify()
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.authorization === credentials) done()
    else reply.code(401).send({ code: 'unauthorized', message: 'a key is needed', status: 401 })
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.type(contentType)
    done(null, payload)
  })

  app.get(
    '/v1/pets',
    { schema: { querystring, response: { 200: { type: 'array', items: pet } } } },
    (request, reply) => {
      const { limit, status: wanted } = request.query
      const pets = store.list(limit, wanted)
      reply.headers(headers).header('X-Total-Count', store.count(wanted))
      if (pets.length > limit) {
        pets.pop()
        const filter = wanted === undefined ? '' : `&status=${wanted}`
        reply.header('Link', `</v1/pets?limit=${limit}${filter}&after=${pets[limit - 1].id}>; rel="next"`)
      }
      reply.send(pets)
    },
  )

  app.get('/v1/pets/:petId', { schema: { params, response: { 200: pet } } }, (request, reply) => {
    const found = store.get(request.params.petId)
    if (found === undefined) reply.code(404).send({ code: 'not_found', message: 'no such pet', status: 404 })
    else reply.headers(headers).send(found)
  })

  app.post('/v1/pets', { schema: { body: newPet, response: { 201: pet } } }, async (request, reply) => {
    const added = await store.add(request.body)
    reply.code(201).headers(headers).header('Location', `/v1/pets/${added.id}`)
    return added
  })

  await app.ready()
  listen(app.server)
}

/** A store of the pets as objects in memory; `changed` is awaited for each that is added. */
export function createMemoryStore(pets, changed = () => {}) {
  const byId = new Map(pets.map((each) => [each.id, each]))
  const counts = new Map()
  let lastId = 0
  const note = ({ id, status: ofPet }) => {
    lastId = id
    counts.set(ofPet, (counts.get(ofPet) ?? 0) + 1)
  }
  for (const each of pets) note(each)
  return {
    list(limit, wanted) {
      if (wanted === undefined) return pets.slice(0, limit + 1)
      const found = []
      for (const each of pets) {
        if (each.status === wanted && found.push(each) > limit) break
      }
      return found
    },
    count: (wanted) => (wanted === undefined ? pets.length : (counts.get(wanted) ?? 0)),
    get: (id) => byId.get(id),
    async add({ name, categoryId, status: given = 'available' }) {
      const added = { id: lastId + 1, name, categoryId, status: given }
      pets.push(added)
      byId.set(added.id, added)
      note(added)
      await changed()
      return added
    },
  }
}
