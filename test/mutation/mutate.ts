/**
 * `npm run mutate --prefix test/mutation -- --seed 7 --count 150 src/http src/api/core.ts`: how many mistakes do the tests notice?
 * Puts one mistake (a mutant) after another into a copy of the project, and runs the files of `npm test` that can notice it until one
 * fails: first those that load the changed file, then those that look farther than they load. Each of them runs without a mutant first, once, to
 * see which places it reaches. Prints the score and each mutant that survived, for a person to judge: it may be one that nobody can see.
 *
 * The same seed draws the same mutants of the same source. Those that `tsc` refuses are replaced by others. Without paths they are
 * from the whole of src but the page's client, which is tested in test/browser.
 */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findMutants, type Mutant } from './mutants.ts'
import { type Killer, TestRuns } from './test-runs.ts'

interface PlacedMutant {
  /** From the project's folder on. */
  readonly file: string
  readonly mutant: Mutant
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '150' } },
})
const seed = values.seed
const count = Number.parseInt(values.count, 10)

const folder = mkdtempSync(join(tmpdir(), 'petstore-mutation-'))
// Some tests start the service as another user.
chmodSync(folder, 0o755)
process.on('exit', () => {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    // A test that was ended leaves the file system behind that it had mounted.
    console.error(`Not removed: ${String(error)}`)
  }
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))

const copy = join(folder, 'project')
const clean = join(folder, 'clean')
const tmp = join(folder, 'tmp')
mkdirSync(tmp)
copyProject(root, copy)
copyProject(root, clean)
const runs = new TestRuns(copy, clean, tmp)
await runs.prepare()

const survivors: string[] = []
let killed = 0
let tooLate = 0
for (const { file, mutant } of drawMutants()) {
  if (killed + survivors.length === count) break
  const path = join(copy, file)
  const text = readFileSync(path, 'utf8')
  const mutated = text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end)
  writeFileSync(path, mutated)
  const isRefused = !runs.compiles()
  const killer = isRefused ? undefined : await runs.findKiller(file, mutant.reachedAt)
  writeFileSync(path, text)
  if (isRefused) continue
  const line = text.slice(0, mutant.start).split('\n').length
  const title = `${file}:${line}: ${mutant.change}`
  if (killer === undefined) survivors.push(`${title}\n${formatDiff(text, mutated)}`)
  else killed++
  if (killer?.isTooLate) tooLate++
  console.log(
    `${killed + survivors.length}. ${describe(killer)}: ${killer === undefined ? survivors.at(-1) : title}`,
  )
}

const total = killed + survivors.length
const percent = Math.round((100 * killed) / total)
console.log(`\nSurvivors:\n\n${survivors.join('\n\n')}\n`)
console.log(
  `Seed ${seed}: ${killed} of ${total} mutants were killed (${percent} %), ${tooLate} of them by a time limit.`,
)

function describe(killer: Killer | undefined): string {
  if (killer === undefined) return 'SURVIVED'
  return `killed by ${killer.name}${killer.isTooLate ? ', which did not end' : ''}`
}

/** All mutants in the order in which they are drawn: by a hash, so that other files change nothing in it. */
function drawMutants(): readonly PlacedMutant[] {
  const paths = positionals.length > 0 ? positionals : ['src']
  const mutants = paths.flatMap(listSources).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    return findMutants(text).map((mutant) => ({ file, mutant }))
  })
  const rankOf = ({ file, mutant: { start, change } }: PlacedMutant): string =>
    createHash('sha256').update(`${seed} ${file} ${start} ${change}`).digest('hex')
  const ranks = new Map(mutants.map((mutant) => [rankOf(mutant), mutant]))
  return [...ranks].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, mutant]) => mutant)
}

/** The sources at a path: of a folder all but the page's client. */
function listSources(path: string): readonly string[] {
  if (statSync(join(root, path)).isFile()) return [path]
  const names = readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name.endsWith('.ts')).map((name) => join(path, name))
  return files.filter((file) => !file.startsWith(join('src', 'page', 'client'))).toSorted()
}

function copyProject(from: string, to: string): void {
  const left = new Set(['node_modules', 'dist', '.git'])
  cpSync(from, to, { recursive: true, filter: (path) => !left.has(basename(path)) })
  symlinkSync(join(from, 'node_modules'), join(to, 'node_modules'))
}

/** The lines that differ, the old ones before the new ones. */
function formatDiff(before: string, after: string): string {
  const [old, changed] = [before.split('\n'), after.split('\n')]
  const start = old.findIndex((line, index) => line !== changed[index])
  let same = 0
  while (same < Math.min(old.length, changed.length) - start && old.at(-1 - same) === changed.at(-1 - same))
    same++
  const removed = old.slice(start, old.length - same).map((line) => `- ${line}`)
  const added = changed.slice(start, changed.length - same).map((line) => `+ ${line}`)
  return [...removed, ...added].join('\n')
}
