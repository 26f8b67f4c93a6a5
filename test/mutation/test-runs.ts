/**
 * Runs the test files on two copies of the project: on the clean one, to see which places of the source each of them reaches, and on the other,
 * to see which of them fails on a mutant. A file is run on the clean one only before its first mutant.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import blankTypes from 'ts-blank-space'
import { Coverage } from './coverage.ts'

/** What failed on a mutant. */
export interface Killer {
  /** A test file, with the test if that is known, or the build. */
  readonly name: string
  /** Whether it failed because it did not end in time. */
  readonly isTooLate: boolean
}

interface TestFile {
  readonly name: string
  /** The files that it loads, each with the number of imports on the shortest way to it. */
  readonly imports: ReadonlyMap<string, number>
  /** Whether it may notice what it does not reach by itself. */
  readonly looksFarther: boolean
  /** In which sources it has noticed how many mistakes. */
  readonly notices: Map<string, number>
  /** Its run without a mutant, once it was needed. */
  baseline?: Promise<Baseline>
  /** How long that took. Undefined until it has ended. */
  seconds?: number
}

interface Baseline {
  readonly seconds: number
  readonly coverage: Coverage
}

/**
 * In the text of a test file that looks farther than its own process: it starts programs, which are killed before they can report what they
 * reach and run built files, or it reads the source as text.
 */
const fartherLook = /\b(?:buildOnce|startProgram|runProgram|findInSources)\b/

// More than cores: most of them wait.
const concurrency = 4

/** How long one test may take without a mutant. */
const limitMs = 600_000

const buildLimitMs = 60_000

/** The process groups of what runs: a test file, and the programs that it has started. */
const mutantGroups = new Set<number>()
const cleanGroups = new Set<number>()
process.on('exit', () => [...mutantGroups, ...cleanGroups].forEach(killGroup))

/** A copy of the project, and what is made of it. */
interface Copy {
  readonly project: string
  /** The project as JavaScript: see test/translated.mjs. */
  readonly translated: string
  readonly dist: string
}

export class TestRuns {
  readonly #mutated: Copy
  readonly #clean: Copy
  readonly #tmp: string
  readonly #files: readonly TestFile[]
  /** The clean copy, in which the source has blanks where it had types. */
  #blanked = ''

  /** `project` and `clean` are two copies of the project. The tests put their temporary files into `tmp`. */
  constructor(project: string, clean: string, tmp: string) {
    this.#mutated = { project, translated: join(tmp, 'translated'), dist: join(tmp, 'dist') }
    this.#clean = {
      project: clean,
      translated: join(tmp, 'translated-clean'),
      dist: join(tmp, 'dist-clean'),
    }
    this.#tmp = tmp
    const names = readdirSync(join(clean, 'test')).filter((name) => name.endsWith('.test.ts'))
    this.#files = names.map((each) => {
      const name = join('test', each)
      const looksFarther = fartherLook.test(readFileSync(join(clean, name), 'utf8'))
      return { name, imports: findImports(clean, name), looksFarther, notices: new Map() }
    })
  }

  /** Translates and builds the unchanged source. Throws if that fails. */
  async prepare(): Promise<void> {
    const failure = (await this.#translate(this.#clean)) ?? (await this.#build(this.#clean))
    if (failure !== undefined) throw new Error(`${failure.name} fails without a mutant`)
    this.#blanked = this.#blankTypes()
  }

  /** Runs a test file on the unchanged source. Throws if it fails. */
  async #measure(file: TestFile): Promise<Baseline> {
    const folder = mkdtempSync(join(this.#tmp, 'coverage-'))
    // Some programs run as another user.
    chmodSync(folder, 0o777)
    const start = performance.now()
    const env = { NODE_V8_COVERAGE: folder, PETSTORE_TEST_TRANSLATED: this.#blanked }
    const run = () => this.#runTests(this.#clean, file.name, limitMs, env)
    // A busy machine fails a test now and then, but seldom twice.
    const failure = (await run()) && (await run())
    if (failure !== undefined) throw new Error(`${failure.name} fails without a mutant`)
    file.seconds = (performance.now() - start) / 1000
    const coverage = new Coverage(folder, `${pathToFileURL(this.#clean.project).href}/`)
    rmSync(folder, { recursive: true })
    return { seconds: file.seconds, coverage }
  }

  compiles(): boolean {
    return (
      spawnSync(join(this.#mutated.project, 'node_modules/.bin/tsc'), { cwd: this.#mutated.project })
        .status === 0
    )
  }

  /** Builds, and runs the test files that can notice a mistake at this place of this source until one fails. */
  async findKiller(source: string, offset: number): Promise<Killer | undefined> {
    let killer = await this.#translate(this.#mutated)
    const found = (failure: Killer | undefined): void => {
      if (failure === undefined || killer !== undefined) return
      killer = failure
      // What the others would find changes nothing.
      mutantGroups.forEach(killGroup)
    }
    const build = killer === undefined ? this.#build(this.#mutated).then(found) : undefined
    await inParallel(this.#chooseFiles(source), async (file) => {
      if (killer !== undefined) return
      file.baseline ??= this.#measure(file)
      const { seconds, coverage } = await file.baseline
      if (!file.looksFarther && !coverage.reaches(source, offset)) return
      if (file.looksFarther) await build
      const limitForTestMs = 5_000 + 3_000 * seconds
      const run = () => this.#runTests(this.#mutated, file.name, limitForTestMs)
      if (killer !== undefined || (await run()) === undefined || killer !== undefined) return
      // As above.
      const failure = await run()
      if (failure === undefined || killer !== undefined) return
      file.notices.set(source, 1 + (file.notices.get(source) ?? 0))
      found(failure)
    })
    await build
    return killer
  }

  /**
   * First those that load the source: those that have noticed mistakes in it, the quick ones before the slow ones, and then those that load it
   * by the fewest imports. Of the others, which seldom fail, the slow ones come first: they wait beside the rest.
   */
  #chooseFiles(source: string): readonly TestFile[] {
    const rankOf = ({ imports, notices, seconds = 0 }: TestFile): number => {
      const noticed = notices.get(source) ?? 0
      return noticed > 0 ? seconds / noticed : 1_000 * (imports.get(source) ?? 0) + seconds
    }
    const first = this.#files.filter(({ imports }) => imports.has(source))
    const others = this.#files.filter((file) => file.looksFarther && !first.includes(file))
    return [
      ...first.toSorted((a, b) => rankOf(a) - rankOf(b)),
      ...others.toSorted((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0)),
    ]
  }

  /** Translates the project for all runs of a mutant: test/translated.mjs does it at its start, and forgets it at its end. */
  async #translate(copy: Copy): Promise<Killer | undefined> {
    rmSync(copy.translated, { recursive: true, force: true })
    const keep = `fs.cpSync(process.env.PETSTORE_TEST_TRANSLATED, '${copy.translated}', { recursive: true })`
    const env = { PETSTORE_TEST_TRANSLATED: undefined }
    return this.#run(copy, 'test/translated.mjs', ['--eval', keep], buildLimitMs, env)
  }

  async #build(copy: Copy): Promise<Killer | undefined> {
    // As in a clone, where nothing is built yet.
    rmSync(copy.dist, { recursive: true, force: true })
    return this.#run(copy, 'src/build.ts', ['src/build.ts', copy.dist], buildLimitMs)
  }

  /**
   * A copy of the translated project, in which the source has blanks where it had types: V8 then reports places as they are in the source.
   * The page is not built yet, so that what builds it is reached as well.
   */
  #blankTypes(): string {
    const blanked = join(this.#tmp, 'blanked')
    cpSync(this.#clean.translated, blanked, { recursive: true })
    const files = readdirSync(join(this.#clean.project, 'src'), { recursive: true, encoding: 'utf8' })
    for (const file of files.filter((name) => /(?<!\.d)\.ts$/.test(name))) {
      const text = readFileSync(join(this.#clean.project, 'src', file), 'utf8')
      writeFileSync(join(blanked, 'src', file.replace(/ts$/, 'js')), blankTypes(text))
    }
    return blanked
  }

  #runTests(
    copy: Copy,
    script: string,
    limitForTestMs: number,
    env: NodeJS.ProcessEnv = {},
  ): Promise<Killer | undefined> {
    return this.#run(copy, script, ['--test-reporter=tap', script], limitForTestMs, env)
  }

  /**
   * Runs a script, and resolves with it if it fails, or as soon as one of its tests does. test/time-limit.ts ends it when one test takes
   * longer than the limit; if a test keeps its thread busy for ever, it is killed after twice the limit.
   */
  async #run(
    copy: Copy,
    name: string,
    args: readonly string[],
    limitForTestMs: number,
    env: NodeJS.ProcessEnv = {},
  ): Promise<Killer | undefined> {
    const inherited = Object.entries(process.env).filter(([key]) => !/^(?:PETSTORE_|PORT$|HOST$)/.test(key))
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--import', './test/translated.mjs', ...args],
      {
        cwd: copy.project,
        detached: true,
        env: {
          ...Object.fromEntries(inherited),
          TMPDIR: this.#tmp,
          PETSTORE_TEST_LIMIT_MS: String(limitForTestMs),
          PETSTORE_TEST_TRANSLATED: copy.translated,
          PETSTORE_TEST_DIST: copy.dist,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const { pid } = child
    if (pid === undefined) throw new Error(`${name} cannot be run`)
    const ofItsCopy = copy === this.#mutated ? mutantGroups : cleanGroups
    ofItsCopy.add(pid)
    let isTooLate = false
    const limit = setTimeout(() => {
      isTooLate = true
      killGroup(pid)
    }, 2 * limitForTestMs)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('Not ended after')) isTooLate = true
    })
    const hasEnded = once(child, 'exit').then(([code]: unknown[]) => code === 0)
    const failedTest = new Promise<string>((resolve) => {
      createInterface(child.stdout).on('line', (line) => {
        const [, title] = /^ *not ok \d+ - (.*)$/.exec(line) ?? []
        if (title !== undefined) resolve(title)
      })
    })
    const outcome = await Promise.race([hasEnded, failedTest])
    clearTimeout(limit)
    killGroup(pid)
    await hasEnded
    ofItsCopy.delete(pid)
    if (outcome === true) return undefined
    return { name: outcome === false ? name : `${name} (${outcome})`, isTooLate }
  }
}

/** What a file loads of the project, itself included, by the relative imports in its text. */
function findImports(project: string, name: string): ReadonlyMap<string, number> {
  const found = new Map([[name, 0]])
  // A Map goes on with what is added meanwhile: the nearest come first.
  for (const [file, distance] of found) {
    const text = readFileSync(join(project, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']*\.ts)'/g)) {
      const path = join(dirname(file), specifier)
      if (!found.has(path)) found.set(path, distance + 1)
    }
  }
  return found
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  const workers = Array.from({ length: concurrency }, async () => {
    for (const item of queue) await work(item)
  })
  await Promise.all(workers)
}

/** What a test file has left behind ends with it. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing of it is left.
  }
}
