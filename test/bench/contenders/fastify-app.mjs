/** The operations in Fastify 5, with schemas for query, body and responses, over any store. */
import fastify from 'fastify'
import { listen, setup } from './listen.mjs'

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
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    status,
    after: { type: 'integer', minimum: 0, default: 0 },
  },
}
const params = { type: 'object', properties: { petId: { type: 'integer', minimum: 1 } } }

// Fastify would add `; charset=utf-8` to a type that is set before; set last, it is sent as it is, and at the least cost.
const { 'Content-Type': contentType, ...headers } = setup.headers
const { 'Content-Type': _, ...petHeaders } = setup.petHeaders
const credentials = `Bearer ${setup.key}`

/** The store is as memory-store.mjs describes it; its `add` may return a promise. */
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
      const { limit, status: wanted, after } = request.query
      const pets = store.list(limit, wanted, after)
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
    else reply.headers(petHeaders).send(found)
  })

  app.post('/v1/pets', { schema: { body: newPet, response: { 201: pet } } }, async (request, reply) => {
    const added = await store.add(request.body)
    reply.code(201).headers(headers).header('Location', `/v1/pets/${added.id}`)
    return added
  })

  await app.ready()
  listen(app.server)
}
