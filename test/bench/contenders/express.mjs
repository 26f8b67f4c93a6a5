/** Express 5, the pets in memory. */
import { createServer } from 'node:http'
import express from 'express'
import { listen, readPets, setup } from './listen.mjs'
import { createMemoryStore } from './memory-store.mjs'

const store = createMemoryStore(readPets())
const credentials = `Bearer ${setup.key}`
const app = express()
app.disable('x-powered-by')
app.use((request, response, next) => {
  if (request.headers.authorization === credentials) next()
  else response.status(401).json({ code: 'unauthorized', message: 'a key is needed', status: 401 })
})

app.get('/v1/pets', (request, response) => {
  const { limit: given = '20', status, after = '0' } = request.query
  const limit = Number(given)
  const pets = store.list(limit, status, Number(after))
  response.setHeader('X-Total-Count', store.count(status))
  if (pets.length > limit) {
    pets.pop()
    const filter = status === undefined ? '' : `&status=${status}`
    response.setHeader('Link', `</v1/pets?limit=${limit}${filter}&after=${pets[limit - 1].id}>; rel="next"`)
  }
  send(response, pets, setup.headers)
})

app.get('/v1/pets/:petId', (request, response) => {
  const found = store.get(Number(request.params.petId))
  if (found === undefined) response.sendStatus(404)
  else send(response, found, setup.petHeaders)
})

/** `response.json` would add `; charset=utf-8` and an ETag. */
function send(response, value, headers) {
  const body = JSON.stringify(value)
  for (const name in headers) response.setHeader(name, headers[name])
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

listen(createServer(app))
