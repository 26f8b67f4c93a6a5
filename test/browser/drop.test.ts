/**
 * A request that is dropped on purpose fails in the client, once: none sends it again by itself, on a connection that was used before
 * either, and none takes it for a response. In Chromium and Firefox, from pages of another origin, and in other common clients.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { startPetStore, type PetStoreServer, type RequestLog } from '../../src/index.ts'
import { key } from './fixtures.ts'

const body = '{"name":"Rex","categoryId":1}'
const run = promisify(execFile)

/** How many pets each kind of drop leaves. What hangs is dropped by a reset. */
const kinds = { 'POST:hang': 0, 'POST:drop': 0, 'POST:after:drop': 1 } as const

interface Watched {
  /** From now on, requests fail in this way. */
  readonly fail: (kind: string) => void
  readonly store: PetStoreServer
  readonly log: readonly RequestLog[]
}

async function startWatched(t: TestContext, port = 0): Promise<Watched> {
  const log: RequestLog[] = []
  let current = ''
  const store = await startPetStore({
    apiKeys: [key],
    pets: [],
    port,
    onResponse: (entry) => {
      log.push(entry)
      // The response to come is logged before it hangs.
      if (current === 'POST:hang' && entry.status === 0) setImmediate(() => store.reset())
    },
  })
  t.after(() => store.close())
  const fail = (kind: string): void => {
    current = kind
    store.disturb({ fail: kind })
  }
  return { store, log, fail }
}

function countPosts(log: readonly RequestLog[]): number {
  return log.filter(({ method }) => method === 'POST').length
}

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petstore-drop-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** A page that lists the pets, and then adds one on the same connection, as each kind asks. Tells what came of that. */
const page = `<!doctype html><title>drop</title><script type="module">
  const headers = { authorization: 'Bearer ${key}', 'content-type': 'application/json' }
  const store = new URLSearchParams(location.search).get('store')
  const ask = (init) => fetch(store + '/v1/pets', { headers, ...init }).then(({ status }) => status, () => 'rejected')
  const results = []
  for (const kind of ${JSON.stringify(Object.keys(kinds))}) {
    await fetch('/begin?' + kind, { method: 'POST' })
    const before = await ask()
    results.push([kind, before, await ask({ method: 'POST', body: '${body}' }), await ask()])
  }
  await fetch('/end', { method: 'POST', body: JSON.stringify(results) })
</script>`

/** Opens the page in a browser, and resolves with what it tells. */
async function runPage(
  t: TestContext,
  { store, fail }: Watched,
  open: (url: string, folder: string) => string[],
) {
  let tell: ((results: unknown) => void) | undefined
  const told = new Promise<unknown>((resolve) => {
    tell = resolve
  })
  const server = createServer((request, response) => {
    const [path, kind] = (request.url ?? '').split('?')
    if (path === '/begin') fail(kind ?? '')
    if (path === '/end') void text(request).then((results) => tell?.(JSON.parse(results)))
    response.setHeader('Content-Type', 'text/html').end(path === '/page' ? page : '')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = Object(server.address())
  const folder = await makeFolder(t)
  const [command = '', ...args] = open(
    `http://127.0.0.1:${port}/page?store=${encodeURIComponent(store.url)}`,
    folder,
  )
  const browser = spawn(command, args, {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, HOME: folder },
  })
  const gone = once(browser, 'exit')
  try {
    return await Promise.race([told, gone.then(() => assert.fail('the browser has ended'))])
  } finally {
    server.closeAllConnections()
    server.close()
    if (browser.pid !== undefined && browser.exitCode === null) process.kill(-browser.pid, 'SIGKILL')
    await gone
  }
}

const quiet = ['--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync']

const browsers: Readonly<Record<string, (url: string, folder: string) => string[]>> = {
  Chromium: (url, folder) => [
    'chromium',
    '--headless',
    '--no-sandbox',
    ...quiet,
    `--user-data-dir=${folder}`,
    url,
  ],
  Firefox: (url, folder) => ['firefox-esr', '--headless', '--no-remote', '--profile', folder, url],
}

for (const [name, open] of Object.entries(browsers)) {
  describe(`in ${name}, a dropped request rejects once, and the store has acted once or not at all`, () => {
    for (const port of [0, 80]) {
      test(port === 0 ? 'on a free port' : 'on port 80', async (t) => {
        let watched: Watched
        try {
          watched = await startWatched(t, port)
        } catch (error) {
          assert.match(String(error), /^Error: port: 80 /)
          return t.skip('port 80 is not free, or needs a privilege')
        }
        const expected = Object.keys(kinds).map((kind) => [kind, 200, 'rejected', 200])
        assert.deepEqual(await runPage(t, watched, open), expected)
        assert.equal(watched.store.countPets(), 1)
        assert.equal(countPosts(watched.log), Object.keys(kinds).length)
      })
    }
  })
}

/** Each sends a list and then a creation on the same connection, and ends with an error unless the creation has failed. */
const clients: Readonly<Record<string, (url: string, folder: string) => Promise<string[]>>> = {
  "Node's fetch": async (url) => [
    process.execPath,
    '--input-type=module',
    '--eval',
    `const headers = { authorization: 'Bearer ${key}', 'content-type': 'application/json' }
     await (await fetch('${url}', { headers })).text()
     const failed = await fetch('${url}', { method: 'POST', headers, body: '${body}' }).then(() => false, () => true)
     process.exit(failed ? 0 : 1)`,
  ],
  "Node's http": async (url) => [
    process.execPath,
    '--eval',
    `const http = require('node:http')
     const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
     const headers = { authorization: 'Bearer ${key}', 'content-type': 'application/json' }
     http.get('${url}', { agent, headers }, (response) => response.resume().on('end', () => setImmediate(() => {
       const request = http.request('${url}', { agent, headers, method: 'POST' }, () => process.exit(1))
       request.on('error', () => process.exit(0)).end('${body}')
     })))`,
  ],
  Python: async (url) => [
    'python3',
    '-c',
    `import http.client, sys
from urllib.parse import urlsplit
connection = http.client.HTTPConnection(urlsplit('${url}').netloc)
headers = {'Authorization': 'Bearer ${key}', 'Content-Type': 'application/json'}
connection.request('GET', '/v1/pets', headers=headers)
connection.getresponse().read()
connection.request('POST', '/v1/pets', '${body}', headers)
try:
    connection.getresponse().read()
except (http.client.HTTPException, OSError):
    sys.exit(0)
sys.exit(1)`,
  ],
  curl: async (url) => [
    'bash',
    '--norc',
    '-c',
    `! curl -sS -f -H 'Authorization: Bearer ${key}' '${url}' --next \\
      -sS -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${body}' '${url}'`,
  ],
  Java: async (url, folder) => {
    const source = join(folder, 'Drop.java')
    await writeFile(
      source,
      `import java.io.*; import java.net.*; import java.nio.charset.StandardCharsets;
       class Drop {
         static HttpURLConnection open() throws Exception {
           var connection = (HttpURLConnection) new URL("${url}").openConnection();
           connection.setRequestProperty("Authorization", "Bearer ${key}");
           connection.setRequestProperty("Content-Type", "application/json");
           return connection;
         }
         public static void main(String[] args) throws Exception {
           open().getInputStream().readAllBytes();
           var connection = open();
           connection.setRequestMethod("POST");
           connection.setDoOutput(true);
           connection.getOutputStream().write(${JSON.stringify(body)}.getBytes(StandardCharsets.UTF_8));
           try { connection.getInputStream().readAllBytes(); } catch (IOException failure) { return; }
           System.exit(1);
         }
       }`,
    )
    return ['java', source]
  },
}

describe('fails once on a connection that was used before, in', () => {
  for (const [name, prepare] of Object.entries(clients)) {
    test(name, async (t) => {
      const { store, log, fail } = await startWatched(t)
      const folder = await makeFolder(t)
      const [command = '', ...args] = await prepare(`${store.url}/v1/pets`, folder)
      for (const [kind, added] of Object.entries(kinds)) {
        const [pets, posts] = [store.countPets(), countPosts(log)]
        fail(kind)
        try {
          await run(command, args)
        } catch (error) {
          if (Object(error).code === 'ENOENT') return t.skip(`${command} is not installed`)
          throw error
        }
        assert.equal(store.countPets() - pets, added, kind)
        assert.equal(countPosts(log) - posts, 1, kind)
      }
    })
  }
})
