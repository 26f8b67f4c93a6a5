/** The built files: what is in them, which Node they refuse, and what an installed package of them does. */
import assert from 'node:assert/strict'
import { exec, execSync, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { runInNewContext } from 'node:vm'
import { build, transform } from 'esbuild'
import { buildOnce } from './built.ts'
import {
  cleanEnvironment,
  isThorough,
  key,
  makeFolder,
  root,
  runProgram,
  send,
  startApp,
  startProgram,
  copyFolder,
} from './support.ts'

const dist = buildOnce()
const programs = ['server.js', 'contract.test.js']
const libraries = ['index.js', 'postgres.js', 'index.mjs', 'postgres.mjs']

/** Copies `dist/server.js` into an empty folder, and makes runProgram run the copy. */
function copyAlone(t: TestContext): string {
  const folder = makeFolder()
  copyFileSync(join(dist, 'server.js'), join(folder, 'server.js'))
  process.env['PETSTORE_TEST_ENTRY'] = join(folder, 'server.js')
  t.after(() => delete process.env['PETSTORE_TEST_ENTRY'])
  return folder
}

test('a build leaves nothing of an older one', () => {
  assert.equal(existsSync(join(dist, 'left.js')), false)
})

test('serves from one file in an empty folder, and stops, without a warning, and without pg', async (t) => {
  const folder = copyAlone(t)
  const watching = makeFolder()
  const program = await startProgram(t, folder, watchDatabase(watching))
  const { url } = program
  let errors = ''
  program.child.stderr?.on('data', (text: string) => {
    errors += text
  })

  const body = { name: 'Rex', categoryId: 1 }
  assert.equal((await send(url, '/v1/pets', { body })).status, 201)
  assert.equal(
    (await send(url, '/v1/pets')).text,
    '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]',
  )
  assert.equal((await send(url, '/healthz', { headers: { authorization: null } })).text, '{"status":"ok"}')
  assert.match((await send(url, '/openapi.json')).text, /"openapi":"3\.1/)
  const schema = await send(url, '/pets.schema.json', { headers: { authorization: null } })
  assert.equal(schema.headers.get('content-type'), 'application/json')
  assert.equal(schema.text, readFileSync(join(root, 'data/pets.schema.json'), 'utf8'))
  const page = await send(url, '/')
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(page.text, /<script type="module">[^]+<\/script>/)
  const policy = page.headers.get('content-security-policy') ?? ''
  const directives = policy.split('; ').map((directive) => directive.split(' ')[0])
  assert.deepEqual(directives, [
    'default-src',
    'script-src',
    'style-src',
    'connect-src',
    'img-src',
    'base-uri',
    'form-action',
    'frame-ancestors',
    'require-trusted-types-for',
    'trusted-types',
  ])

  program.child.kill('SIGTERM')
  assert.deepEqual(await program.ended, { code: 0, signal: null })
  assert.equal(errors, '')
  assert.ok(program.output().includes(`\nVersion: ${describeVersion()}\n`), program.output())
  assert.equal(existsSync(join(watching, 'evaluated')), false)
  assert.doesNotMatch(program.output(), /warning/i)
  assert.deepEqual(readdirSync(folder).toSorted(), ['data', 'server.js'])
})

test('names version, commit and date at --version and starts nothing, also where a package.json makes its files ES modules, as the contract suite runs there', () => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  for (const name of ['server.js', 'contract.test.js']) copyFileSync(join(dist, name), join(folder, name))
  const run = (args: readonly string[]) =>
    spawnSync(process.execPath, args, { cwd: folder, env: cleanEnvironment(), encoding: 'utf8' })
  const { stdout, stderr, status } = run(['server.js', '--version'])
  assert.deepEqual([stdout, stderr, status], [`${describeVersion()}\n`, '', 0])
  assert.deepEqual(readdirSync(folder).toSorted(), ['contract.test.js', 'package.json', 'server.js'])
  const suite = run(['contract.test.js', 'http://127.0.0.1:1/v1', 'k'])
  assert.match(suite.stdout + suite.stderr, /127\.0\.0\.1:1\/v1 does not respond/)
})

test('can be started by its own name, as a program', () => {
  const path = join(dist, 'server.js')
  assert.equal(readFileSync(path, 'utf8').split('\n', 1)[0], '#!/usr/bin/env node')
  if (process.platform !== 'win32') accessSync(path, constants.X_OK)
})

test('is readable: names and lines are as in the source', () => {
  const text = readFileSync(join(dist, 'server.js'), 'utf8')
  assert.match(text, /^function describeForPerson\(error\) \{\n {2}if \(!isError\(error\)\) return void 0;$/m)
})

test('loads no modules but those of Node', () => {
  for (const name of [...programs, ...libraries]) {
    const text = readFileSync(join(dist, name), 'utf8')
    const modules = [...text.matchAll(/(?:\brequire\(|\bimport\(|^import .* from )"([^"]+)"/gm)].map(
      ([, module]) => module ?? '',
    )
    assert.notEqual(modules.length, 0, name)
    const foreign = modules.filter((module) => !isBuiltin(module))
    // What these three are for is never reached: see src/build.ts.
    const expected = name === 'server.js' ? ['pg-cloudflare', 'pg-native', 'pgpass'] : []
    assert.deepEqual(foreign.toSorted(), expected)
  }
})

function fail(message: string): never {
  throw new Error(message)
}

/** Runs the built file as if Node had this version and no modules. */
function runOn(version: string, file: string): { printed: readonly string[]; outcome: string } {
  const printed: string[] = []
  const module = { exports: {} }
  const globals = {
    process: { versions: { node: version }, on: () => {}, exit: (code: number) => fail(`exit ${code}`) },
    console: { error: (line: string) => printed.push(line) },
    module,
    exports: module.exports,
    require: (name: string) => fail(`require ${name}`),
  }
  const text = readFileSync(join(dist, file), 'utf8').replace(/^#!.*/, '')
  try {
    runInNewContext(text, globals)
  } catch (error) {
    return { printed, outcome: String(error) }
  }
  return { printed, outcome: 'none' }
}

for (const name of [...programs, 'index.js', 'postgres.js']) {
  for (const version of ['16.20.2', '18.20.8', '20.9.0', '20.18.3']) {
    test(`refuses Node ${version} in one line, before anything is loaded: ${name}`, () => {
      const { printed, outcome } = runOn(version, name)
      const message = `Petstore needs Node 20.19 or newer; this is ${version}`
      // What is imported throws it; a program prints it.
      assert.deepEqual(
        { printed, outcome },
        name === 'index.js' || name === 'postgres.js'
          ? { printed: [], outcome: `Error: ${message}` }
          : { printed: [message], outcome: 'Error: exit 1' },
      )
    })
  }

  for (const version of ['20.19.0', '22.0.0', '100.0.0']) {
    test(`accepts Node ${version}: ${name}`, () => {
      const { printed, outcome } = runOn(version, name)
      assert.deepEqual(printed, [])
      assert.match(outcome, /^Error: require node:/)
    })
  }
}

// The libraries have no source that the programs lack, and the same build.
for (const name of [...programs, ...(isThorough ? libraries : [])]) {
  test(`can be parsed by Node 16, so that it prints that line: ${name}`, async () => {
    const text = readFileSync(join(dist, name), 'utf8')
    // If Node 16 could not parse something, esbuild would write it in another way.
    const [as16, asWritten] = await Promise.all(
      ['node16.11', 'esnext'].map((target) => transform(text, { target })),
    )
    assert.equal(as16?.code, asWritten?.code)
  })
}

test('what Node 16 cannot parse is told by how esbuild writes it', async () => {
  for (const newer of ['class A { static { f() } }', 'f(/a/v)', 'using a = f()']) {
    assert.notEqual((await transform(newer, { target: 'node16.10' })).code, (await transform(newer)).code)
  }
})

const old = 'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "18.20.8" })'

test('refuses an older Node in that line when it is imported', () => {
  const modules = ['index.mjs', 'postgres.mjs'].map((name) => join(dist, name))
  const script = modules
    .map((path) => `await import('${pathToFileURL(path)}').catch(({ message }) => console.log(message));`)
    .join('')
  const args = ['--import', old, '--input-type=module', '-e', script]
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(stdout, 'Petstore needs Node 20.19 or newer; this is 18.20.8\n'.repeat(2))
  // A name that an older Node lacks would be a SyntaxError before that line.
  for (const path of modules) {
    for (const newer of ['hash', 'isUtf8'])
      assert.doesNotMatch(readFileSync(path, 'utf8'), new RegExp(`^import \\{.*\\b${newer}\\b`, 'm'))
  }
})

test('works in a bundle of an app that esbuild makes, of either format', async () => {
  const folder = makeFolder()
  const contents = `import { createPetStore } from 'petstore'
    import { createPostgresStorage } from 'petstore/postgres'
    createPetStore({ apiKeys: ['k'], pets: [{ name: 'Rex', categoryId: 1 }] }).then((store) =>
      console.log(store.countPets(), typeof createPostgresStorage))`
  mkdirSync(join(folder, 'node_modules/petstore'), { recursive: true })
  copyFileSync(join(root, 'package.json'), join(folder, 'node_modules/petstore/package.json'))
  symlinkSync(dist, join(folder, 'node_modules/petstore/dist'))
  const stdin = { contents, resolveDir: folder }
  for (const [format, name] of [
    ['esm', 'app.mjs'],
    ['cjs', 'app.cjs'],
  ] as const)
    await build({
      stdin,
      outfile: join(folder, name),
      format,
      bundle: true,
      platform: 'node',
      logLevel: 'silent',
      preserveSymlinks: true,
    })
  const both = "import('./app.mjs'); require('./app.cjs')"
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', both], { cwd: folder, encoding: 'utf8' })
  assert.deepEqual([stdout, stderr], ['1 function\n1 function\n', ''])
})

test('a build on an older Node ends with that line, before it loads what an older Node cannot', () => {
  const loaders = [old, import.meta.resolve('./translated.mjs')].flatMap((url) => ['--import', url])
  const script = join(root, 'src/build.ts')
  const args = ['--disable-warning=ExperimentalWarning', ...loaders, script, join(makeFolder(), 'dist')]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [1, '', 'Petstore needs Node 20.19 or newer; this is 18.20.8\n'])
  assert.doesNotMatch(readFileSync(script, 'utf8'), /^import .* from '\./m)
})

/** pg, and what it consists of. */
const ofDatabase = [
  'pg',
  'pg-connection-string',
  'pg-int8',
  'pg-pool',
  'pg-protocol',
  'pg-types',
  'postgres-array',
  'postgres-bytea',
  'postgres-date',
  'postgres-interval',
  'xtend',
]

/** For a program that says in the file `evaluated` of this folder that it has evaluated pg. */
function watchDatabase(folder: string): NodeJS.ProcessEnv {
  // Nothing but pg in it loads this module of Node.
  const script = `const loader = require("node:module")
    const load = loader._load
    loader._load = (name, ...rest) => {
      if (name === 'dns') require('node:fs').writeFileSync(${JSON.stringify(join(folder, 'evaluated'))}, '')
      return load(name, ...rest)
    }`
  writeFileSync(join(folder, 'watch.cjs'), script)
  return { NODE_OPTIONS: `--require ${JSON.stringify(join(folder, 'watch.cjs'))}` }
}

test('evaluates pg when there is a database', async (t) => {
  const folder = copyAlone(t)
  const env = { ...watchDatabase(folder), PETSTORE_DATABASE_URL: 'postgres://127.0.0.1:1/d' }
  const program = runProgram(t, folder, env)
  await program.waitFor(/^waiting 30 s at most for the database/m)
  assert.equal(existsSync(join(folder, 'evaluated')), true)
})

/** With the commit and its date. */
function describeVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return existsSync(join(root, '.git'))
    ? `${version} (${git('describe --always --abbrev=7 --exclude=* --dirty')}, ${git('log -1 --format=%cs')})`
    : version
}

function git(args: string): string {
  return execSync(`git ${args}`, { cwd: root, encoding: 'utf8' }).trim()
}

test('begins with its license, and those of all packages whose code it contains', () => {
  const ours = readFileSync(join(root, 'LICENSE'), 'utf8').trim()
  assert.match(ours, /^MIT License\n\nCopyright \(c\) 2026 the Petstore authors\n/)
  const expected = {
    'server.js': [...ofDatabase, 'lowdb', 'valibot'],
    'index.js': ['lowdb', 'valibot'],
    'index.mjs': ['lowdb', 'valibot'],
    'postgres.js': [],
    'postgres.mjs': [],
    'contract.test.js': [],
  }
  for (const [name, ofThis] of Object.entries(expected)) {
    const text = readFileSync(join(dist, name), 'utf8')
    const [head = ''] = text.split('*/', 1)
    assert.ok(head.includes(ours), name)
    const packages = new Set(
      [...text.matchAll(/^ *\/\/ .*\bnode_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(([, module = '']) => module),
    )
    assert.deepEqual([...packages].toSorted(), ofThis.toSorted())
    for (const module of packages) {
      const folder = join(root, 'node_modules', module)
      const file = readdirSync(folder).find((other) => /^license/i.test(other)) ?? 'README.md'
      const license = readFileSync(join(folder, file), 'utf8').replace(/^[^]*## license/, '')
      assert.ok(head.includes(license.trim()), `${name}: ${module}`)
    }
  }
})

test('runs from a packed install as npx runs it, which has the license, the interface, its OpenAPI document and the suite that verifies a server', async (t) => {
  const source = makeFolder()
  cpSync(dist, join(source, 'dist'), { recursive: true })
  for (const name of ['package.json', 'LICENSE', 'README.md', 'data', 'src/api/interface.md']) {
    copyFolder(join(root, name), join(source, name))
  }
  const env = cleanEnvironment()
  const npm = (cwd: string, command: string): string =>
    execSync(command, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const archive = npm(source, 'npm pack --ignore-scripts --silent').trim()
  // Installs it as npm would, but without its dependencies: the built files contain them.
  const modules = join(makeFolder(), 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  npm(modules, `tar -xzf "${join(source, archive)}" && mv package petstore`)
  chmodSync(join(modules, 'petstore/dist/server.js'), 0o755)
  symlinkSync('../petstore/dist/server.js', join(modules, '.bin/petstore'))
  // What npx runs. npx itself takes longer than that, so it is tried once, below, and only when thorough.
  const installed = join('node_modules', '.bin', 'petstore')
  assert.match(npm(dirname(modules), `${installed} --help`), /^Usage: npx petstore \[--port/)
  const print = 'console.log(typeof createPostgresStorage, typeof prepareTables)'
  const names = '{ createPostgresStorage, prepareTables }'
  const code = npm(
    dirname(modules),
    `node --input-type=module -e "import ${names} from 'petstore/postgres'; ${print}"`,
  )
  assert.equal(code, 'function function\n')
  for (const name of ['LICENSE', 'src/api/interface.md'])
    assert.ok(existsSync(join(modules, 'petstore', name)))

  const { url } = await startApp(t, { pets: [] })
  const load = `const ${names} = require('petstore/postgres')`
  const printDocument = "process.stdout.write(fs.readFileSync(require.resolve('petstore/openapi.json')))"
  const printed = npm(dirname(modules), `node -e "${load}; ${print}; ${printDocument}"`)
  assert.equal(printed, `function function\n${await (await fetch(`${url}/openapi.json`)).text()}`)
  const verify = (args: string, more: NodeJS.ProcessEnv = {}, command = installed) =>
    new Promise<readonly [code: number, output: string]>((resolve) => {
      const options = { cwd: dirname(modules), env: { ...env, ...more } }
      exec(`${command} --verify ${args}`, options, (error, stdout, stderr) =>
        resolve([error?.code ?? 0, stdout + stderr]),
      )
    })
  const [verified, output] = await verify(
    `${url} --all`,
    { PETSTORE_API_KEY: key },
    isThorough ? 'npx petstore' : installed,
  )
  assert.equal(verified, 0, output)
  assert.match(output, new RegExp(`^Verifying ${url}/v1\nPassed: all \\d+ cases\\.\n$`))
  const [failed, reasons] = await verify(`${url} --keys other`)
  assert.equal(failed, 1)
  assert.match(reasons, /^The server refuses the key, which came by --keys\./)
  const [unasked, request] = await verify(url)
  assert.equal(unasked, 1)
  const line = 'npx petstore --verify http://127.0.0.1:4000/v1 --keys my-key'
  assert.equal(
    request,
    `The key of the server is missing. Type its address and a key that it knows, such as:\n  ${line}\n`,
  )
})

test('ships the files that package.json names', () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const named = [...JSON.stringify(manifest).matchAll(/"\.?\/?dist\/([^"]+)"/g)].map(([, name]) => name ?? '')
  assert.ok(named.length >= 5)
  for (const name of named) assert.ok(existsSync(join(dist, name)), name)
})
