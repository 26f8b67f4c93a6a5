/**
 * What becomes of the cases of the contract suite: which failed and why, when the rest is skipped, and at the end what to fix first.
 * Knows no case.
 */
import { type Client, type FaultKind, Finding, NoAnswer, PlainError } from './contract-client.ts'
import { Blocked, FormViolation, NotTried, TooSlow } from './contract-expect.ts'

export interface Case {
  /** Such as `4.1 List pets`. */
  readonly section: string
  readonly title: string
  /** Gives the reason if the case was not tried or cannot be judged. Rejects when it fails. */
  run(): Promise<string | undefined>
}

export interface Conclusion {
  /** Whether all was tried, and passed. */
  readonly isGood: boolean
  /** The causes, those that may be behind others first. The last line says how many cases passed, failed and were not tried. */
  readonly text: string
}

export interface Verdict {
  /** Defines the cases of a section. */
  createTest(section: string): (title: string, run: () => Promise<void>) => void
  readonly cases: readonly Case[]
  /** The sections are given by their numbers. */
  hasFailed(...numbers: readonly string[]): boolean
  /** Whether the server has stopped responding. */
  isGone(): boolean
  /** To be called after the last case. */
  conclude(): Conclusion
}

interface Failure {
  readonly section: string
  readonly title: string
  readonly error: unknown
}

const shownCauses = 10
const shownTitles = 3
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

/** `isPatient` tries all cases, however slow the server is. */
export function createVerdict(client: Client, isPatient: boolean): Verdict {
  const cases: Case[] = []
  const failures: Failure[] = []
  const blocked: (Failure & { readonly error: Blocked })[] = []
  const notTried = new Map<string, number>()
  let passedCount = 0
  let leftOutCount = 0
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

  /** A server may be dead, or may only fail at this request: a list tells which. */
  async function noteNoAnswer(section: string, error: NoAnswer): Promise<void> {
    if (error.isLate) hangCount += 1
    late = { count: error.isLate ? late.count + 1 : 0, section }
    const next = error.isUnreachable ? error : await client.list().catch((second: unknown) => second)
    if (next instanceof NoAnswer) stopWords = `the server no longer responds: ${next.reason}`
    else if (hangCount >= maxHangs) stopWords = `the server left ${maxHangs} requests without a response`
  }

  const hasFailed: Verdict['hasFailed'] = (...numbers) =>
    failures.some(({ section }) => numbers.includes(numberOf(section)))

  const run = async (section: string, title: string, body: () => Promise<void>) => {
    const skipReason = findSkipReason(section)
    if (skipReason !== undefined) {
      leftOutCount += 1
      notTried.set(skipReason, (notTried.get(skipReason) ?? 0) + 1)
      return skipReason
    }
    try {
      await body()
      passedCount += 1
      late.count = 0
      return undefined
    } catch (error) {
      if (error instanceof NotTried) {
        if (error instanceof TooSlow) leftOutCount += 1
        notTried.set(error.message, (notTried.get(error.message) ?? 0) + 1)
        return error.message
      }
      // In its own section it is a failure, unless it was told already.
      const isTold = failures.some((other) => causeOf(other.error, client) === causeOf(error, client))
      if (error instanceof Blocked && (error.section !== numberOf(section) || isTold)) {
        blocked.push({ section, title, error })
        return `not judged, see section ${error.section}: ${error.reason}`
      }
      failures.push({ section, title, error })
      if (error instanceof NoAnswer) await noteNoAnswer(section, error)
      else late.count = 0
      throw error instanceof PlainError ? new PlainError(`${section}: ${title}\n${error.message}`) : error
    }
  }

  return {
    cases,
    createTest: (section) => (title, body) => {
      cases.push({ section, title, run: () => run(section, title, body) })
    },
    hasFailed,
    isGone: () => stopWords !== undefined,
    conclude() {
      // What was noted stands before the failures of the same cause.
      const all: Failure[] = []
      for (const [kind, error] of client.faults) all.push({ ...faultTitles[kind], error })
      all.push(...failures)
      // A case that builds on what no case has found broken has found it.
      const unexplained = blocked.find(({ error }) => !hasFailed(error.section))
      if (unexplained !== undefined) all.push(unexplained)
      const causes = groupByCause(all, client)
      const lines = causes.slice(0, shownCauses).map(formatCause)
      if (causes.length > shownCauses) lines.push(`And ${count(causes.length - shownCauses, 'more cause')}.`)
      for (const [reason, number] of notTried) lines.push(`${count(number, 'case')} not tried: ${reason}.`)
      if (causes.length > 1)
        lines.unshift('Fix the first cause first, and run this again: it may be behind others.')
      const isGood = all.length === 0 && leftOutCount === 0
      const kinds = Object.keys(faultTitles).length
      const passed = passedCount + kinds - client.faults.size
      const total = count(cases.length + kinds, 'case')
      const parts = [
        passed === cases.length + kinds ? `all ${total}` : `${passed} of ${total} passed`,
        ...(all.length > 0 ? [`${all.length} failed (${count(causes.length, 'cause')})`] : []),
        ...(blocked.length > 0 ? [`${blocked.length} cannot be judged before these are fixed`] : []),
        ...(leftOutCount > 0 ? [`${leftOutCount} not tried`] : []),
      ]
      return {
        isGood,
        text: [...lines, `${isGood ? 'Passed' : 'Not passed'}: ${parts.join(', ')}.`].join('\n'),
      }
    },
  }
}

export function numberOf(section: string): string {
  return section.split(' ', 1)[0] ?? section
}

/** What was noted is told as a failure of a case of its own. */
const faultTitles: Record<FaultKind, { readonly section: string; readonly title: string }> = {
  address: { section: '9 Versions', title: 'has its operations under /v1, at their paths' },
  key: { section: '5 Keys', title: 'takes the key as "Authorization: Bearer <key>"' },
  http: { section: '1 The service', title: 'sends every response in right HTTP' },
  json: { section: '1 The service', title: 'sends every body as JSON, and nothing else' },
}

/** What comes first may be behind what comes later: a pet that is not stored cannot be fetched or listed. */
const kindOrder: readonly FaultKind[] = ['address', 'key', 'http', 'json']
const sectionOrder = ['1', '4.2', '2', '3', '4.3', '4.1', '8', '9', '4.4', '5', '7']

function rankOf({ section, error }: Failure, { faults }: Client): number {
  for (const [kind, fault] of faults) if (fault === error) return kindOrder.indexOf(kind)
  if (error instanceof NoAnswer) return kindOrder.indexOf('http')
  const afterKinds = kindOrder.length
  if (error instanceof FormViolation) return afterKinds
  const afterForms = afterKinds + 1 + sectionOrder.indexOf(numberOf(section))
  // What should have been refused is behind nothing else.
  const isAboutRefusal =
    error instanceof Finding && /^(?:4\d\d|a refusal|an Error body)\b/.test(error.expected)
  return afterForms + (isAboutRefusal || section.startsWith('7') ? sectionOrder.length : 0)
}

interface Cause {
  readonly failures: [Failure, ...Failure[]]
  rank: number
}

function groupByCause(failures: readonly Failure[], client: Client): readonly Cause[] {
  const causes = new Map<string, Cause>()
  for (const failure of failures) {
    const key = causeOf(failure.error, client)
    const rank = rankOf(failure, client)
    const cause = causes.get(key)
    if (cause === undefined) causes.set(key, { failures: [failure], rank })
    else {
      cause.failures.push(failure)
      cause.rank = Math.min(cause.rank, rank)
    }
  }
  return [...causes.values()].toSorted((a, b) => a.rank - b.rank || b.failures.length - a.failures.length)
}

/** The same for failures that differ only in values, or in which success it was. */
function causeOf(error: unknown, { succeeded }: Client): string {
  if (!(error instanceof Finding)) return String(error)
  const { operation, expected, received } = error
  const [status] = /^[345]\d\d /.exec(received) ?? []
  // An operation that never succeeds is one cause, whatever was expected of it. How it takes keys is another.
  if (status !== undefined && !/^40[13]/.test(status) && !succeeded.has(operation))
    return `${operation}: ${status}`
  return [expected, received].map(generalize).join(' / ')
}

function generalize(text: string): string {
  return text
    .replace(/^2\d\d .*/s, 'success')
    .replace(/^([345]\d\d) .*/s, '$1')
    .replace(/: [1-5]\d\d .*/s, '')
    .replaceAll(/ ?\([^)]*\)/g, '')
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '"…"')
    .replaceAll('pets', 'pet')
    .replaceAll(/\b(?:available|pending|sold)\b/g, 'STATUS')
    .replaceAll(/-?\d+/g, (digits, at) => (at === 0 && /^\d{3}(?::|$)/.test(text) ? digits : 'N'))
}

function formatCause({ failures }: Cause, index: number): string {
  const [{ error }] = failures
  const sections = [...new Set(failures.map(({ section }) => section))].join(', ')
  const titles = failures.slice(0, shownTitles).map(({ title }) => title)
  if (failures.length > shownTitles) titles.push(`${failures.length - shownTitles} more`)
  const message = error instanceof Error ? error.message : String(error)
  const lines = [`${index + 1}. ${sections}: ${titles.join('; ')}`, ...message.split('\n')]
  return lines.map((line) => line.replace(/^(.{299}).+$/, '$1…')).join('\n')
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
