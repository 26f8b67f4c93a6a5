/** json-server 1, listening on loopback only. It knows no keys and sends headers of its own. */
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname } from 'node:path'
import { createApp } from 'json-server/lib/app.js'
import { JSONFilePreset } from 'lowdb/node'
import { listen, setup } from './listen.mjs'

// It serves this folder too, and in production insists on it; as in development it would look into it at each request.
process.chdir(dirname(setup.petsFile))
mkdirSync('public', { recursive: true })

const app = createApp(await JSONFilePreset(setup.petsFile, {}))
listen(createServer((request, response) => app.handler(request, response)))
