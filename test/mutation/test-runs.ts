/** Runs the test files of a copy of the project: which functions each of them reaches, and which of them fails on a mutant. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** What failed on a mutant: a test file, or the build. */
export interface Killer {
  readonly name: string
  /** Whether it failed because it did not end in time. */
  readonly isTooLate: boolean
}

interface TestFile {
  readonly name: string
  /** How long it runs without a mutant. */
  readonly seconds: number
  /** The functions that it reaches, in the source and in the programs that it starts, as `src/api/request-handler.ts respond`. */
  readonly reached: ReadonlySet<string>
}

/** The part of a report of V8's coverage that is read here. */
interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly count: number }[]
    }[]
  }[]
}

// More than cores: most of them wait.
const concurrency = 4

/** How long one test may take without a mutant, or the build. */
const limitMs = 600_000

/** The process groups of what runs: a test file, and the programs that it has started. */
const groups = new Set<number>()
process.on('exit', () => groups.forEach(killGroup))

export class TestRuns {
  readonly #project: string
  readonly #tmp: string
  #files: readonly TestFile[] = []

  /** The tests put their temporary files into `tmp`. */
  constructor(project: string, tmp: string) {
    this.#project = project
    this.#tmp = tmp
  }

  /** Runs each test file on the unchanged source. Throws if one fails. */
  async measure(): Promise<void> {
    const names = readdirSync(join(this.#project, 'test')).filter((name) => name.endsWith('.test.ts'))
    const files: TestFile[] = []
    const measureFile = async (name: string): Promise<void> => {
      const coverage = join(this.#tmp, `coverage-${name}`)
      const script = join('test', name)
      const start = performance.now()
      // Nothing is built, so the tests start the programs from source: what these reach counts as well.
      const failure = await this.#run(script, limitMs, { NODE_V8_COVERAGE: coverage })
      const seconds = (performance.now() - start) / 1000
      files.push({ name: script, seconds, reached: this.#readCoverage(coverage) })
      rmSync(coverage, { recursive: true })
      // A program that may not write its coverage says so, which not every test expects.
      const isFailing = failure !== undefined && (await this.#run(script, limitMs)) !== undefined
      if (isFailing) throw new Error(`${script} fails without a mutant`)
    }
    await inParallel(names, measureFile)
    this.#files = files.toSorted((a, b) => a.seconds - b.seconds)
  }

  compiles(): boolean {
    return spawnSync(join(this.#project, 'node_modules/.bin/tsc'), { cwd: this.#project }).status === 0
  }

  /** Builds, and runs the test files until one fails: first those that reach the changed function, the quick ones before the slow ones. */
  async findKiller(source: string, functions: readonly string[]): Promise<Killer | undefined> {
    const dist = join(this.#tmp, 'dist')
    // As in a clone, where nothing is built yet.
    rmSync(dist, { recursive: true, force: true })
    let killer = await this.#run('src/build.ts', limitMs, {}, [dist])
    const reaches = ({ reached }: TestFile, name: string): boolean => reached.has(`${source} ${name}`)
    // What is outside of all functions is reached by loading the file.
    const name = functions.find((one) => this.#files.some((file) => reaches(file, one))) ?? ''
    const first = this.#files.filter((file) => reaches(file, name))
    const files = [...first, ...this.#files.filter((file) => !first.includes(file))]
    await inParallel(files, async (file) => {
      if (killer !== undefined) return
      const failure = await this.#run(file.name, 30_000 + 3_000 * file.seconds, { PETSTORE_TEST_DIST: dist })
      if (failure === undefined || killer !== undefined) return
      killer = failure
      // What the others would find changes nothing.
      groups.forEach(killGroup)
    })
    return killer
  }

  /**
   * Runs a script, and resolves with it if it fails. test/time-limit.ts ends it when one test takes longer than the limit; if a test
   * keeps its thread busy for ever, it is killed after twice the limit.
   */
  async #run(
    script: string,
    limitForTestMs: number,
    env: NodeJS.ProcessEnv = {},
    args: readonly string[] = [],
  ): Promise<Killer | undefined> {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(?:PETSTORE_|PORT$|HOST$)/.test(name))
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--import', import.meta.resolve('tsx'), script, ...args],
      {
        cwd: this.#project,
        detached: true,
        env: {
          ...Object.fromEntries(inherited),
          TMPDIR: this.#tmp,
          PETSTORE_TEST_LIMIT_MS: String(limitForTestMs),
          ...env,
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    const { pid } = child
    if (pid === undefined) throw new Error(`${script} cannot be run`)
    groups.add(pid)
    let isTooLate = false
    const limit = setTimeout(() => {
      isTooLate = true
      killGroup(pid)
    }, 2 * limitForTestMs)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('Not ended after')) isTooLate = true
    })
    const [code]: unknown[] = await once(child, 'exit')
    clearTimeout(limit)
    killGroup(pid)
    groups.delete(pid)
    return code === 0 ? undefined : { name: script, isTooLate }
  }

  #readCoverage(folder: string): ReadonlySet<string> {
    const reached = new Set<string>()
    const home = `${pathToFileURL(this.#project).href}/`
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), 'utf8')
      // A program that was killed may have written half of its report.
      if (!text.endsWith('}')) continue
      // The form of these reports is V8's.
      const { result } = JSON.parse(text) as Coverage
      for (const { url, functions } of result.filter((script) => script.url.startsWith(`${home}src/`))) {
        const source = url.slice(home.length).replace(/\?.*/, '')
        for (const { functionName, ranges } of functions) {
          if ((ranges[0]?.count ?? 0) > 0) reached.add(`${source} ${functionName}`)
        }
      }
    }
    return reached
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
