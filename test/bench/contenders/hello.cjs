/** The shortest way to a first response. CommonJS, as dist/server.js is, since that starts some milliseconds sooner. */
const { createServer } = require('node:http')

// `node --test` without file names runs every script under `test`.
if (process.env.NODE_TEST_CONTEXT !== undefined) process.exit()

const server = createServer((request, response) => {
  response.setHeader('Content-Length', 2)
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
