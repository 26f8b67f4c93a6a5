/** What any program that holds a JSON file in memory has to do: read it and JSON.parse. It keeps running, so that it can be measured. */
const { readFileSync } = require('node:fs')

globalThis.parsed = JSON.parse(readFileSync(process.argv[2], 'utf8'))
console.log('parsed')
process.stdin.resume()
