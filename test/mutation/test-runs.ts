/** Runs the test files of a copy of the project: which places of the source each of them reaches, and which of them fails on a mutant. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
  /** How long it runs without a mutant. */
  readonly seconds: number
  readonly coverage: Coverage
  /** Whether it may notice what it does not reach by itself. */
  readonly looksFarther: boolean
  /** In which sources it has noticed how many mistakes. */
  readonly notices: Map<string, number>
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
const groups = new Set<number>()
process.on('exit', () => groups.forEach(killGroup))

export class TestRuns {
  readonly #project: string
  readonly #tmp: string
  /** The project as JavaScript: see test/translated.mjs. */
  readonly #translated: string
  readonly #dist: string
  #files: readonly TestFile[] = []

  /** The tests put their temporary files into `tmp`. */
  constructor(project: string, tmp: string) {
    this.#project = project
    this.#tmp = tmp
    this.#translated = join(tmp, 'translated')
    this.#dist = join(tmp, 'dist')
  }

  /** Runs each test file on the unchanged source. Throws if one fails. */
  async measure(): Promise<void> {
    const failure = (await this.#translate()) ?? (await this.#build())
    if (failure !== undefined) throw new Error(`${failure.name} fails without a mutant`)
    const names = readdirSync(join(this.#project, 'test')).filter((name) => name.endsWith('.test.ts'))
    const files: TestFile[] = []
    const blanked = this.#blankTypes()
    await inParallel(names, async (name) => {
      const script = join('test', name)
      const folder = join(this.#tmp, `coverage-${name}`)
      mkdirSync(folder)
      // Some programs run as another user.
      chmodSync(folder, 0o777)
      const start = performance.now()
      const measured = { NODE_V8_COVERAGE: folder, PETSTORE_TEST_TRANSLATED: blanked }
      if ((await this.#runTests(script, limitMs, measured)) !== undefined)
        throw new Error(`${script} fails without a mutant`)
      const seconds = (performance.now() - start) / 1000
      const coverage = new Coverage(folder, `${pathToFileURL(this.#project).href}/`)
      const looksFarther = fartherLook.test(readFileSync(join(this.#project, script), 'utf8'))
      files.push({ name: script, seconds, coverage, looksFarther, notices: new Map() })
      rmSync(folder, { recursive: true })
    })
    this.#files = files
  }

  compiles(): boolean {
    return spawnSync(join(this.#project, 'node_modules/.bin/tsc'), { cwd: this.#project }).status === 0
  }

  /** Builds, and runs the test files that can notice a mistake at this place of this source until one fails. */
  async findKiller(source: string, offset: number): Promise<Killer | undefined> {
    let killer = await this.#translate()
    const found = (failure: Killer | undefined): void => {
      if (failure === undefined || killer !== undefined) return
      killer = failure
      // What the others would find changes nothing.
      groups.forEach(killGroup)
    }
    const build = killer === undefined ? this.#build().then(found) : undefined
    await inParallel(this.#chooseFiles(source, offset), async (file) => {
      if (file.looksFarther) await build
      const run = (): Promise<Killer | undefined> => this.#runTests(file.name, 5_000 + 3_000 * file.seconds)
      if (killer !== undefined || (await run()) === undefined || killer !== undefined) return
      // A busy machine fails a test now and then, but seldom twice.
      const failure = await run()
      if (failure === undefined || killer !== undefined) return
      file.notices.set(source, 1 + (file.notices.get(source) ?? 0))
      found(failure)
    })
    await build
    return killer
  }

  /**
   * First those that reach the place, the quick ones before the slow ones, and those earlier that have noticed mistakes in this source. Of
   * the others, which seldom fail, the slow ones come first: they wait beside the rest.
   */
  #chooseFiles(source: string, offset: number): readonly TestFile[] {
    const rankOf = ({ seconds, notices }: TestFile): number => seconds / (1 + (notices.get(source) ?? 0))
    const first = this.#files.filter(({ coverage }) => coverage.reaches(source, offset))
    const others = this.#files.filter((file) => file.looksFarther && !first.includes(file))
    return [
      ...first.toSorted((a, b) => rankOf(a) - rankOf(b)),
      ...others.toSorted((a, b) => b.seconds - a.seconds),
    ]
  }

  /** Translates the project for all runs of a mutant: test/translated.mjs does it at its start, and forgets it at its end. */
  async #translate(): Promise<Killer | undefined> {
    rmSync(this.#translated, { recursive: true, force: true })
    const keep = `fs.cpSync(process.env.PETSTORE_TEST_TRANSLATED, '${this.#translated}', { recursive: true })`
    const env = { PETSTORE_TEST_TRANSLATED: undefined }
    return this.#run('test/translated.mjs', ['--eval', keep], buildLimitMs, env)
  }

  async #build(): Promise<Killer | undefined> {
    // As in a clone, where nothing is built yet.
    rmSync(this.#dist, { recursive: true, force: true })
    return this.#run('src/build.ts', ['src/build.ts', this.#dist], buildLimitMs)
  }

  /**
   * A copy of the translated project, in which the source has blanks where it had types: V8 then reports places as they are in the source.
   * The page is not built yet, so that what builds it is reached as well.
   */
  #blankTypes(): string {
    const blanked = join(this.#tmp, 'blanked')
    cpSync(this.#translated, blanked, { recursive: true })
    const files = readdirSync(join(this.#project, 'src'), { recursive: true, encoding: 'utf8' })
    for (const file of files.filter((name) => /(?<!\.d)\.ts$/.test(name))) {
      const text = readFileSync(join(this.#project, 'src', file), 'utf8')
      writeFileSync(join(blanked, 'src', file.replace(/ts$/, 'js')), blankTypes(text))
    }
    return blanked
  }

  #runTests(
    script: string,
    limitForTestMs: number,
    env: NodeJS.ProcessEnv = {},
  ): Promise<Killer | undefined> {
    return this.#run(script, ['--test-reporter=tap', script], limitForTestMs, env)
  }

  /**
   * Runs a script, and resolves with it if it fails, or as soon as one of its tests does. test/time-limit.ts ends it when one test takes
   * longer than the limit; if a test keeps its thread busy for ever, it is killed after twice the limit.
   */
  async #run(
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
        cwd: this.#project,
        detached: true,
        env: {
          ...Object.fromEntries(inherited),
          TMPDIR: this.#tmp,
          PETSTORE_TEST_LIMIT_MS: String(limitForTestMs),
          PETSTORE_TEST_TRANSLATED: this.#translated,
          PETSTORE_TEST_DIST: this.#dist,
          ...env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const { pid } = child
    if (pid === undefined) throw new Error(`${name} cannot be run`)
    groups.add(pid)
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
    groups.delete(pid)
    if (outcome === true) return undefined
    return { name: outcome === false ? name : `${name} (${outcome})`, isTooLate }
  }
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
