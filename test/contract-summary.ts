/**
 * What the contract suite says at the end: the causes of the failures, the one to fix first as the last of them, where the eye is, and how
 * many cases passed, failed, were not judged and not tried. Knows no case.
 */
import { type Client, type FaultKind, Finding, NoAnswer } from './contract-client.ts'
import { Blocked } from './contract-expect.ts'
import { findHint } from './contract-hints.ts'

/**
 * How soon somebody who builds a server needs a case: `basic` is what `--basics` tries, `integers` is about those that many languages
 * round, and `strict` is the rest.
 */
export type Level = 'basic' | 'strict' | 'integers'

export interface Failure {
  readonly section: string
  readonly title: string
  readonly level: Level
  /** Its place among the failures, in the order in which they were found. */
  readonly at: number
  readonly error: unknown
  /** If it is something that may be wrong with every response. */
  readonly kind?: FaultKind
}

export type Color = 'bold' | 'green' | 'red' | 'yellow'
export type Paint = (color: Color, text: string) => string

export interface Conclusion {
  /**
   * 0 if all was tried and passed, 1 if something failed, 2 if nothing failed and something was not tried. With `--basics`, what the pets of the
   * store hide need not be tried.
   */
  readonly exitCode: 0 | 1 | 2
  /** The last line says how many cases passed, failed and were not tried; the cause to fix first stands before it. */
  readonly text: string
}

export interface Outcome {
  readonly client: Client
  readonly failures: readonly Failure[]
  /** How many cases build on what has failed in another one. */
  readonly notJudgedCount: number
  /** How many cases were not tried, by the reason. */
  readonly notTried: ReadonlyMap<string, number>
  /** How many of these only the pets of the store hide. */
  readonly hiddenCount: number
  readonly passedCount: number
  /** Those that have not run are counted as not tried. */
  readonly caseCount: number
  /** The sections of the cases that `--basics` leaves out. */
  readonly leftOut: readonly string[]
  /** Without it, the text has no colors. */
  readonly paint?: Paint
}

const shownCauses = 10
const rowChars = 80
/** Of a cause: a third of a terminal. */
const maxRows = 8
/** Of a request that is too long. */
const endChars = 40

export function summarize(outcome: Outcome): Conclusion {
  const { client, failures, notJudgedCount, passedCount, caseCount, leftOut } = outcome
  const { paint = (_color, text) => text } = outcome
  const notTried = new Map(outcome.notTried)
  const triedCount = passedCount + failures.length + notJudgedCount
  const knownCount = [...notTried.values()].reduce((sum, number) => sum + number, 0)
  const notRunCount = caseCount - triedCount - knownCount
  if (notRunCount > 0) notTried.set('the suite was stopped', notRunCount)
  const notTriedCount = caseCount - triedCount

  const causes = groupByCause(failures, client)
  const lines = [...notTried].map(([reason, number]) => `${count(number, 'case')} not tried: ${reason}.`)
  if (leftOut.length > 0) lines.push(describeLeftOut(leftOut))
  if (causes.length > shownCauses)
    lines.push(`${count(causes.length - shownCauses, 'more cause')} not shown, to be fixed later.`)
  const shown = causes.slice(0, shownCauses).map((cause, index) => formatCause(cause, index + 1, paint))
  lines.push(...shown.toReversed())
  if (causes.length > 1)
    lines.push(paint('bold', 'Fix number 1 first, and run this again: it may be behind others.'))

  // --basics leaves out cases anyway, so a store that is not empty any more does not keep a pupil from passing.
  const isIncomplete = notTriedCount > (leftOut.length > 0 ? outcome.hiddenCount : 0)
  const exitCode = failures.length > 0 ? 1 : isIncomplete ? 2 : 0
  const total = `${count(caseCount, 'case')}${leftOut.length > 0 ? ' of --basics' : ''}`
  const parts = [
    passedCount === caseCount ? `all ${total}` : `${passedCount} of ${total} passed`,
    ...(failures.length > 0 ? [`${failures.length} failed (${count(causes.length, 'cause')})`] : []),
    ...(notJudgedCount > 0 ? [`${notJudgedCount} cannot be judged before these are fixed`] : []),
    ...(notTriedCount > 0 ? [`${notTriedCount} not tried`] : []),
  ]
  const verdict = [
    paint('green', 'Passed'),
    paint('red', 'Not passed'),
    paint('yellow', 'Nothing failed, but not all was tried'),
  ][exitCode]
  return { exitCode, text: [...lines, `${verdict}: ${parts.join(', ')}.`].join('\n') }
}

/** By section, with the numbers of cases. */
function describeLeftOut(sections: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const section of sections) counts.set(section, (counts.get(section) ?? 0) + 1)
  const parts = [...counts].map(([section, number]) => `${section} (${number})`)
  return `--basics leaves out ${count(sections.length, 'case')}, of ${parts.join(', ')}. Run this without --basics for them.`
}

export const faultKinds: readonly FaultKind[] = ['address', 'key', 'http', 'json']

/** What somebody builds, in this order. A failure belongs to the first step that it fits. */
const steps: readonly ((failure: Failure, error: Finding) => boolean)[] = [
  ...faultKinds.map(
    (wanted) =>
      ({ kind }: Failure) =>
        kind === wanted,
  ),
  // A response at all.
  (_, error) => error instanceof NoAnswer,
  // JSON. A server that fails has no time for it.
  (_, { expected, received }) =>
    /^(?:Content-Type: |a body that is JSON)/.test(expected) && !/\b5\d\d [A-Z]/.test(received),
  // A list.
  (_, { operation, sent, expected }) =>
    operation === 'GET /pets' && !sent.includes('?') && /^(?:200|a JSON array|an array)\b/.test(expected),
  // A pet that is added, is a pet and stays.
  ({ section }, error) =>
    /^(?:1|2|3|4\.2) /.test(section) && error.operation !== 'GET /pets' && !isRefusal(error),
  // A pet that is fetched, and listed.
  ({ section }, error) => section.startsWith('4.3') && !isRefusal(error),
  (_, { expected, received }) =>
    /\bamong them\b|^some pets\b/.test(expected) && /^0 pets|\[\]$/.test(received),
  // The key.
  ({ section }) => section.startsWith('5'),
  // What has to be refused.
  ({ section }, error) => section.startsWith('4') && isRefusal(error),
  // The body of a refusal.
  ({ section }) => section.startsWith('7'),
  // The limits and the filter of a list, and all else.
  () => true,
]

function isRefusal({ expected }: Finding): boolean {
  return /^(?:4\d\d|a refusal|an Error body)\b/.test(expected)
}

const levels: readonly Level[] = ['basic', 'strict', 'integers']
/** Within a step. A pet that is not stored cannot be fetched or listed. */
const sectionOrder = ['4.2', '1', '2', '3', '4.3', '4.1', '8', '9', '4.4', '5', '7']

/** Of two ranks, that comes first whose first number that differs is less. */
type Rank = readonly [level: number, step: number, isBehind: number, section: number, isFoundByOther: number]

function rankOf(failure: Failure): Rank {
  const { section, level, error } = failure
  const step = error instanceof Finding ? steps.findIndex((fits) => fits(failure, error)) : steps.length
  const isFoundByOther = Number(error instanceof Blocked)
  return [levels.indexOf(level), step, 0, sectionOrder.indexOf(numberOf(section)), isFoundByOther]
}

function compareRanks(a: Rank, b: Rank): number {
  const differences = a.map((number, index) => number - (b[index] ?? 0))
  return differences.find((difference) => difference !== 0) ?? 0
}

/**
 * A pet that should have been refused may break a list or the server later on. So a success that is missing behind it, and a server that
 * fails, come behind it, unless the same has failed before.
 */
function rankInOrder(failures: readonly Failure[]): ReadonlyMap<Failure, Rank> {
  const ranks = new Map<Failure, Rank>()
  let accepted: Rank | undefined
  for (const failure of failures.toSorted((a, b) => a.at - b.at)) {
    const { error } = failure
    const rank = rankOf(failure)
    const isRefusalCase = error instanceof Finding && isRefusal(error)
    const mayFollow = !isRefusalCase || /^(?:5\d\d|none)\b/.test(error.received)
    const isBehind = accepted !== undefined && mayFollow && compareRanks(rank, accepted) < 0
    ranks.set(
      failure,
      isBehind && accepted !== undefined ? [accepted[0], accepted[1], 1, rank[3], rank[4]] : rank,
    )
    const isAccepted = isRefusalCase && error.operation === 'POST /pets' && /^2\d\d /.test(error.received)
    // An integer that is too large breaks nothing else.
    if (isAccepted && failure.level !== 'integers') accepted ??= rank
  }
  return ranks
}

interface Cause {
  /** The first of them is shown. */
  readonly failures: readonly [Failure, ...Failure[]]
  readonly rank: Rank
}

function groupByCause(failures: readonly Failure[], client: Client): readonly Cause[] {
  const ranks = rankInOrder(failures)
  const ordered = [...ranks].toSorted(([, a], [, b]) => compareRanks(a, b))
  const causes = new Map<string, { failures: [Failure, ...Failure[]]; rank: Rank }>()
  for (const [failure, rank] of ordered) {
    const key = causeOf(failure.error, client)
    const cause = causes.get(key)
    if (cause === undefined) causes.set(key, { failures: [failure], rank })
    else cause.failures.push(failure)
  }
  return [...causes.values()]
}

/** The same for failures that differ only in values, or in which success it was. */
export function causeOf(error: unknown, { succeeded, faults }: Client): string {
  if (!(error instanceof Finding)) return String(error)
  const { operation, expected, received } = error
  const [status] = /^[345]\d\d /.exec(received) ?? []
  // Where nothing is, each operation says so.
  const address = faults.get('address')
  const isMissing = error === address || (status === '404 ' && address !== undefined)
  const isOfQuery = [address?.sent, error.sent].every((sent) => sent?.includes('/pets?'))
  if (isMissing && (isOfQuery || !succeeded.has('GET /pets'))) return 'address'
  // An operation that never succeeds is one cause, whatever was expected of it. How it takes keys is another.
  if (status !== undefined && !/^40[13]/.test(status) && !succeeded.has(operation))
    return `${operation}: ${status}`
  // A refusal with another status, and a server that fails, are one cause, whatever was wrong with the request.
  const [refusal] = /^4\d\d\b/.exec(expected) ?? []
  if (status !== undefined && refusal !== undefined) return `${refusal}: ${status}`
  if (status?.startsWith('5')) return `${operation}: ${status}`
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

function formatCause({ failures }: Cause, number: number, paint: Paint): string {
  const [{ title, level, error }] = failures
  const sections = [...new Set(failures.map(({ section }) => section))]
  const more = failures.length > 1 ? `; ${failures.length - 1} more` : ''
  const named = sections.length > 2 ? [sections[0], 'others'] : sections
  const head = cut(`${number}. ${named.join(', ')}: ${title}`, rowChars - more.length) + more
  const lines = (error instanceof Error ? error.message : String(error)).split('\n')
  const hint = error instanceof Finding ? findHint(error, level) : undefined
  if (hint !== undefined) lines.push(`  hint:     ${hint}`)
  return [paint('bold', head), ...fitRows(lines).map((line) => paintLine(line, paint))].join('\n')
}

/** Two rows for each line, but one for as many, from the first on, as are too long for all of them. */
function fitRows(lines: readonly string[]): readonly string[] {
  let rows = lines.reduce((sum, line) => sum + (line.length > rowChars ? 2 : 1), 1)
  return lines.map((line) => {
    const isLong = line.length > rowChars
    const isCut = isLong && rows > maxRows
    if (isCut) rows -= 1
    const chars = isCut ? rowChars : 2 * rowChars
    return line.startsWith('  sent: ') ? cutMiddle(line, chars) : cut(line, chars)
  })
}

/** The number that a request is about is mostly the last of its body. */
function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${text.slice(0, maxChars - endChars - 1)}…${text.slice(-endChars)}`
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`
}

function paintLine(line: string, paint: Paint): string {
  if (line.startsWith('  expected: ')) return paint('green', line)
  return line.startsWith('  received: ') ? paint('red', line) : line
}

export function numberOf(section: string): string {
  return section.split(' ', 1)[0] ?? section
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
