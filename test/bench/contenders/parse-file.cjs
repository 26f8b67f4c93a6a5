/** What any program pays that holds a JSON file in memory: reading it and JSON.parse. Stays, so that it can be measured. */
const { readFileSync } = require('node:fs')

globalThis.parsed = JSON.parse(readFileSync(process.argv[2], 'utf8'))
console.log('parsed')
process.stdin.resume()
