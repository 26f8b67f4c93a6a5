/**
 * What becomes of the cases of the contract suite: which passed, failed, were not tried or could not be judged, and when the rest is
 * skipped. Knows no case. What is said of it in the end is made by `contract-summary.ts`.
 */
import { type Client, type FaultKind, Finding, NoAnswer, PlainError } from './contract-client.ts'
import { Blocked, NotTried } from './contract-expect.ts'
import {
  causeOf,
  type Conclusion,
  type Failure,
  faultKinds,
  type Level,
  numberOf,
  type Paint,
  summarize,
} from './contract-summary.ts'

export interface Case {
  /** Such as `4.1 List pets`. */
  readonly section: string
  readonly title: string
  readonly level: Level
  /** Gives the reason if the case was not tried or cannot be judged. Rejects when it fails. */
  run(): Promise<string | undefined>
}

export interface Scope {
  /** Tries all cases, however slow the server is. */
  readonly isPatient: boolean
  /** Tries the basic cases alone. */
  readonly isBasic: boolean
}

export interface Verdict {
  /** Defines the cases of a section. */
  createTest(section: string, level: Level): (title: string, run: () => Promise<void>) => void
  /** Defines the cases of what may be wrong with every response. To be called after all others are defined. */
  defineFaultCases(): void
  readonly cases: readonly Case[]
  /** The sections are given by their numbers. */
  hasFailed(...numbers: readonly string[]): boolean
  /** Whether the server has stopped responding. */
  isGone(): boolean
  /** To be called after the last case, or when the rest is given up. Without `paint`, the text has no colors. */
  conclude(paint?: Paint): Conclusion
}

const maxHangs = 3
/** About as many requests as all cases send, but for the pets that fill a page. */
const requestCount = 350
const slowSuiteMs = 120_000

/** Milliseconds for a response. The first one may be late for another reason, such as a start. Undefined as long as too few came. */
export function paceOf({ timesMs }: Client): number | undefined {
  const [, ...rest] = timesMs
  return rest.length < 2 ? undefined : rest.reduce((sum, timeMs) => sum + timeMs, 0) / rest.length
}

/** The share of the cases that there is time for, at most 1. */
export function shareOf(client: Client): number {
  return Math.min(1, slowSuiteMs / (requestCount * (paceOf(client) ?? 0)))
}

/** In words, if the server is so slow that only some cases are tried. */
export function describeSlowness(client: Client): string | undefined {
  const paceMs = paceOf(client)
  if (paceMs === undefined || shareOf(client) === 1) return undefined
  const minutes = Math.ceil((requestCount * paceMs) / 60_000)
  return `Each response takes ${(paceMs / 1000).toFixed(1)} s, so only some cases are tried. --all tries all, which takes ${minutes} minutes or more.`
}

/** What may be wrong with every response is a case of its own, which looks back at all of them. */
const faultTitles: Record<FaultKind, { readonly section: string; readonly title: string }> = {
  address: { section: '9 Versions', title: 'has its operations under /v1, at their paths' },
  key: { section: '5 Keys', title: 'takes the key as "Authorization: Bearer <key>"' },
  http: { section: '1 The service', title: 'sends every response in right HTTP' },
  json: { section: '1 The service', title: 'sends every body as JSON, and nothing else' },
}

/** A server that has neither operation there was started with other paths, or without any. */
function noteMissingPath({ base, faults, refusals, succeeded }: Client): void {
  if (faults.has('address') || succeeded.size > 0) return
  const find = (wanted: string) =>
    refusals.find(({ operation, status }) => operation === wanted && status === 404)
  const answer = find('GET /pets')
  if (answer === undefined || find('POST /pets') === undefined) return
  const path = new URL(`${base}/pets`).pathname
  faults.set('address', new Finding(answer, 'a list', `nothing is at ${path}: ${answer.received}`))
}

export function createVerdict(client: Client, { isPatient, isBasic }: Scope): Verdict {
  const cases: Case[] = []
  const leftOut: Case[] = []
  const failures: Failure[] = []
  const blocked: (Failure & { readonly error: Blocked })[] = []
  /** How many cases were not tried, by the reason. */
  const notTried = new Map<string, number>()
  /** The case in which each fault was noted first: its level, and how many failures there were before. */
  const faultPlaces = new Map<FaultKind, { readonly level: Level; readonly at: number }>()
  /** How many of these only the pets of the store hide. */
  let hiddenCount = 0
  let passedCount = 0
  let stopWords: string | undefined
  let hangCount = 0
  /** How many cases in a row got no response in time, the last of them in this section. */
  let late = { count: 0, section: '' }
  /** Of a slow server, how much of a case has been saved up for each section. */
  const savings = new Map<string, number>()

  /** In words why this case is left out, if so. */
  function findSkipReason(section: string): string | undefined {
    if (stopWords !== undefined) return stopWords
    if (late.count >= 2 && late.section === section)
      return 'the server left two requests in a row without a response'
    const share = isPatient ? 1 : shareOf(client)
    const saved = (savings.get(section) ?? 1 - share) + share
    savings.set(section, saved >= 1 ? saved - 1 : saved)
    return saved >= 1 ? undefined : 'the server is slow, so only some cases are tried'
  }

  const askForList = () => client.list().catch((error: unknown) => error)

  /**
   * A server may have ended, or may only fail at this request: a list tells which. Gives the error to report: of a server that has ended, its
   * author has to know that it is its own window that says why.
   */
  async function judgeNoAnswer(section: string, error: NoAnswer): Promise<Finding> {
    if (error.isLate) hangCount += 1
    late = { count: error.isLate ? late.count + 1 : 0, section }
    let next: unknown = error.isUnreachable ? error : await askForList()
    // A server that is just ending may reset one more connection before it refuses any.
    if (next instanceof NoAnswer && !next.isUnreachable && !next.isLate) next = await askForList()
    if (next instanceof NoAnswer) stopWords = `the server no longer responds: ${next.reason}`
    else if (hangCount >= maxHangs) stopWords = `the server left ${maxHangs} requests without a response`
    return next instanceof NoAnswer && next.isUnreachable ? error.asEnd() : error
  }

  const hasFailed: Verdict['hasFailed'] = (...numbers) =>
    failures.some(({ section }) => numbers.includes(numberOf(section)))

  const skip = (reason: string): string => {
    notTried.set(reason, (notTried.get(reason) ?? 0) + 1)
    return reason
  }

  const noteFaults = (level: Level, at: number): void => {
    noteMissingPath(client)
    for (const kind of client.faults.keys()) if (!faultPlaces.has(kind)) faultPlaces.set(kind, { level, at })
  }

  const failFault = (kind: FaultKind, error: Finding): Failure => {
    const { level, at } = faultPlaces.get(kind) ?? { level: 'basic', at: 0 }
    return { ...faultTitles[kind], level, at, error, kind }
  }

  const run = async ({ section, title, level }: Omit<Case, 'run'>, body: () => Promise<void>) => {
    const skipReason = findSkipReason(section)
    if (skipReason !== undefined) return skip(skipReason)
    // What is wrong with the address or the key was noted before the first case.
    noteFaults('basic', 0)
    const at = failures.length
    try {
      await body()
      passedCount += 1
      late.count = 0
      return undefined
    } catch (error) {
      if (error instanceof NotTried) {
        hiddenCount += 1
        return skip(error.message)
      }
      // In its own section it is a failure, unless it was told already.
      const isTold = failures.some((other) => causeOf(other.error, client) === causeOf(error, client))
      if (error instanceof Blocked && (error.section !== numberOf(section) || isTold)) {
        blocked.push({ section, title, level, at: at + 1, error })
        return `not judged, see section ${error.section}: ${error.reason}`
      }
      if (!(error instanceof NoAnswer)) late.count = 0
      const found = error instanceof NoAnswer ? await judgeNoAnswer(section, error) : error
      const failure = nameFailure({ section, title, level, at: at + 1, error: found })
      failures.push(failure)
      throw found instanceof PlainError
        ? new PlainError(`${failure.section}: ${failure.title}\n${found.message}`)
        : found
    } finally {
      noteFaults(level, at)
    }
  }

  /** What a case builds on is another thing than what its title says, and may belong to another section. */
  const nameFailure = (failure: Failure): Failure => {
    const { error, title } = failure
    if (!(error instanceof Blocked)) return failure
    const { section = error.section } = cases.find((each) => numberOf(each.section) === error.section) ?? {}
    return { ...failure, section, title: `found by the case "${title}"` }
  }

  const runFaultCase = async (kind: FaultKind): Promise<string | undefined> => {
    const { section, title } = faultTitles[kind]
    const error = client.faults.get(kind)
    if (error === undefined) {
      if (stopWords !== undefined) return skip(stopWords)
      passedCount += 1
      return undefined
    }
    failures.push(failFault(kind, error))
    throw new PlainError(`${section}: ${title}\n${error.message}`)
  }

  return {
    cases,
    createTest: (section, level) => (title, body) => {
      const each = { section, title, level }
      const list = isBasic && level !== 'basic' ? leftOut : cases
      list.push({ ...each, run: () => run(each, body) })
    },
    defineFaultCases() {
      for (const kind of faultKinds)
        cases.push({ ...faultTitles[kind], level: 'basic', run: () => runFaultCase(kind) })
    },
    hasFailed,
    isGone: () => stopWords !== undefined,
    conclude(paint) {
      const all = [...failures]
      const told = new Set(failures.map(({ kind }) => kind))
      for (const [kind, error] of client.faults) if (!told.has(kind)) all.push(failFault(kind, error))
      // A case that builds on what no case has found broken has found it.
      const unexplained = blocked.find(({ error }) => !hasFailed(error.section))
      if (unexplained !== undefined) all.push(nameFailure(unexplained))
      return summarize({
        client,
        failures: all,
        notJudgedCount: blocked.length - (unexplained === undefined ? 0 : 1),
        notTried,
        hiddenCount,
        passedCount,
        caseCount: cases.length,
        leftOut: leftOut.map(({ section }) => section),
        ...(paint && { paint }),
      })
    },
  }
}
