/** node:http by its documented calls, with responses made in advance. For a creation it parses the body and stores nothing. */
import { createServer } from 'node:http'
import { listen, readPets, setup } from './listen.mjs'

// A short text is sent 4 % faster as a string, together with the head, and a long one 5 % faster as bytes.
const prepare = (body) => (body.length < 1000 ? body : Buffer.from(body))
const responses = new Map(
  setup.responses.map(({ target, headers, body }) => [target, { headers, body: prepare(body) }]),
)
const [only] = responses.values()

function sendOnly(request, response) {
  response.writeHead(200, only.headers)
  response.end(only.body)
}

function sendByTarget(request, response) {
  const { headers, body } = responses.get(request.url)
  response.writeHead(200, headers)
  response.end(body)
}

let lastId = readPets().length
const creationHeaders = { ...setup.headers, 'Content-Length': 0, Location: '' }

function createPet(request, response) {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { name, categoryId, status } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    const id = ++lastId
    const body = JSON.stringify({ id, name, categoryId, status })
    // One object for all responses: writeHead has read it when it returns, and a new one would cost a tenth of the rate.
    creationHeaders['Content-Length'] = Buffer.byteLength(body)
    creationHeaders.Location = `/v1/pets/${id}`
    response.writeHead(201, creationHeaders)
    response.end(body)
  })
}

listen(createServer(responses.size === 0 ? createPet : responses.size === 1 ? sendOnly : sendByTarget))
