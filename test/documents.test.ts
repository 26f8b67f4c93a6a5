/**
 * The documents: every link and anchor in them leads somewhere, in the packed package too. A packed document may point to what is not in
 * the package, if it says there that this is in the repository.
 */
import assert from 'node:assert/strict'
import { execSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { posix } from 'node:path'
import { test } from 'node:test'
import { cleanEnvironment, makeFolder, root } from './support.ts'

/** The Markdown files of a folder, as paths from there. */
function findDocuments(folder: string, under = ''): readonly string[] {
  return readdirSync(join(folder, under), { withFileTypes: true }).flatMap((entry) => {
    if (['node_modules', 'dist', '.git'].includes(entry.name)) return []
    const path = posix.join(under, entry.name)
    if (entry.isDirectory()) return findDocuments(folder, path)
    return path.endsWith('.md') ? [path] : []
  })
}

/** The text without what is code, where brackets mean something else. */
function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '')
}

/** What GitHub makes of each heading: `#7-errors` of `## 7. Errors`. */
function findAnchors(text: string): readonly string[] {
  const titles = Array.from(
    text.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm),
    ([, title = '']) => title,
  )
  return titles.map((title) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

interface Link {
  readonly target: string
  /** The paragraph or table that it stands in. */
  readonly block: string
}

function findLinks(text: string): readonly Link[] {
  return withoutCode(text)
    .split(/\n{2,}/)
    .flatMap((block) =>
      Array.from(
        block.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"/g),
        ([, inline, attribute]) => ({
          target: inline ?? attribute ?? '',
          block,
        }),
      ),
    )
    .filter(({ target }) => !/^https?:\/\//.test(target))
}

/** What is wrong with the links of a folder's documents. `packed` are the files of its package. */
function findFaults(folder: string, packed: readonly string[]): readonly string[] {
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8')
  const isPacked = (path: string): boolean =>
    packed.some((file) => file === path || file.startsWith(`${path}/`))
  return findDocuments(folder).flatMap((document) =>
    findLinks(read(document)).flatMap(({ target, block }) => {
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? document : posix.join(dirname(document), path)
      const fault = (words: string): readonly string[] => [`${document}: ${target} ${words}`]
      if (!existsSync(join(folder, file))) return fault('does not exist')
      if (anchor !== undefined && !findAnchors(read(file)).includes(anchor)) return fault('is no heading')
      const isSaid = /\bin the repository\b/i.test(block)
      return isPacked(document) && !isPacked(file) && !isSaid ? fault('is not in the package') : []
    }),
  )
}

test('every link and anchor of the documents leads somewhere, in the package too', () => {
  const output = execSync('npm pack --dry-run --json --ignore-scripts', {
    cwd: root,
    env: cleanEnvironment(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const packed = Array.from(output.matchAll(/^ +"path": "(.+)"/gm), ([, path = '']) => path)
  assert.ok(packed.includes('README.md') && packed.includes('data/pets.json'), output)
  assert.deepEqual(findFaults(root, packed), [])
})

test('a link to nowhere is found, and one from the package to what is not in it', () => {
  const folder = makeFolder()
  mkdirSync(join(folder, 'test'))
  const lines = [
    '# Of `this` & that\n[here](#of-this--that), [there](test/a.md#a), `[code](c.md)`, [web](https://example.org/x)\n',
    '[no file](b.md), [no heading](#of-this), <img src="no.webp">\n',
    'In the repository: [a](test/a.md)\n',
  ]
  writeFileSync(join(folder, 'README.md'), lines.join('\n'))
  writeFileSync(join(folder, 'test/a.md'), '# A\n[back](../README.md#nothing)\n')
  assert.deepEqual(findFaults(folder, ['README.md']), [
    'README.md: test/a.md#a is not in the package',
    'README.md: b.md does not exist',
    'README.md: #of-this is no heading',
    'README.md: no.webp does not exist',
    'test/a.md: ../README.md#nothing is no heading',
  ])
})

const guide = readFileSync(join(root, 'src/program/README.md'), 'utf8')

function findBlocks(language: string): readonly string[] {
  const fences = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms')
  return Array.from(guide.matchAll(fences), ([, text = '']) => text)
}

test('nginx takes all that is shown of its configuration, together', (t) => {
  if (spawnSync('nginx', ['-v']).error !== undefined) return t.skip('needs nginx')
  const folder = makeFolder()
  const blocks = findBlocks('nginx').map((block) =>
    block
      // No test has the right to these, and certificates.
      .replaceAll('/var/log/nginx', folder)
      .replaceAll(/^ +ssl_.*\n/gm, '')
      .replaceAll(' ssl;', ';')
      .replace('$remote_addr', '$remote_addr $team')
      .replace('proxy_pass http://127.0.0.1:3000;', 'proxy_pass http://petstore;'),
  )
  assert.equal(blocks.length, 4)
  const path = join(folder, 'nginx.conf')
  writeFileSync(path, `pid ${folder}/pid;\nevents {}\nhttp {\n${blocks.join('')}}\n`)
  const { status, stderr } = spawnSync('nginx', ['-t', '-e', join(folder, 'error.log'), '-c', path], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
})

test('Caddy takes what is shown of its configuration', (t) => {
  if (spawnSync('caddy', ['version']).error !== undefined) return t.skip('needs Caddy')
  const path = join(makeFolder(), 'Caddyfile')
  writeFileSync(path, findBlocks('caddyfile').join('\n'))
  const { status, stderr } = spawnSync('caddy', ['adapt', '--config', path], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})
