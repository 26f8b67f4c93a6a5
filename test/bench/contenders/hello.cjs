/** The shortest way to a first answer. CommonJS, as dist/server.js is: it starts some milliseconds sooner. */
const { createServer } = require('node:http')

// `node --test` without files takes every script under `test` for one.
if (process.env.NODE_TEST_CONTEXT !== undefined) process.exit()

const server = createServer((request, response) => {
  response.setHeader('Content-Length', 2)
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
