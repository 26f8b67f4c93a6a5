/** The shortest way to a first answer. CommonJS, as dist/server.js is: it starts some milliseconds sooner. */
const { createServer } = require('node:http')

const server = createServer((request, response) => {
  response.setHeader('Content-Length', 2)
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
