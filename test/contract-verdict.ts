/**
 * What becomes of the cases of the contract suite: which failed and why, when the rest is skipped, and at the end what to fix first.
 * Knows no case and no rule of the interface.
 */
import { type Client, Finding, NoAnswer, PlainError } from './contract-client.ts'
import { Blocked } from './contract-expect.ts'

/** What the cases need of a test runner; node:test has it. */
export interface Runner {
  describe(title: string, define: () => void): void
  test(title: string, run: (t: { skip(reason: string): void }) => Promise<void>): void
}

export interface Verdict {
  /** Defines the cases of a section, such as `4.1 List animals`. */
  createTest(section: string): Runner['test']
  /** The sections are given by their numbers. */
  hasFailed(...numbers: readonly string[]): boolean
  /** Whether the server has stopped responding. */
  isGone(): boolean
  /** A case that was not judged because of a section in which nothing has failed. */
  findUnexplained(): Blocked | undefined
  /** The failures, those of one cause together, the most frequent cause first. Undefined if each speaks for itself: for one and none. */
  summarize(): string | undefined
}

interface Failure {
  readonly section: string
  readonly title: string
  readonly error: unknown
}

const shownCauses = 10

export function createVerdict(client: Client, test: Runner['test']): Verdict {
  const failures: Failure[] = []
  const blocked: Blocked[] = []
  let goneWords: string | undefined
  let skippedCount = 0
  /** How many cases in a row got no response in time, the last of them in this section. */
  let late = { count: 0, section: '' }

  /** In words why this case need not be tried, if so: each request that is not answered would take 10 s. */
  function findSkipReason(section: string): string | undefined {
    if (goneWords !== undefined) return 'the server is gone'
    return late.count >= 2 && late.section === section
      ? 'the server left two requests in a row without a response, see above'
      : undefined
  }

  /** A server may be dead, or may only fail at this request: a list tells which. */
  async function noteNoAnswer(section: string, error: NoAnswer): Promise<void> {
    late = { count: error.isLate ? late.count + 1 : 0, section }
    const next = error.isUnreachable ? error : await client.list().catch((second: unknown) => second)
    if (next instanceof NoAnswer)
      goneWords = `The server no longer responds (${next.reason}), so the cases that follow are skipped.`
  }

  return {
    createTest: (section) => (title, run) => {
      test(title, async (t) => {
        const skipReason = findSkipReason(section)
        if (skipReason !== undefined) {
          skippedCount += 1
          return t.skip(skipReason)
        }
        try {
          await run(t)
          late.count = 0
        } catch (error) {
          if (error instanceof Blocked && error.section !== numberOf(section)) {
            blocked.push(error)
            return t.skip(`not judged, see section ${error.section}: ${error.reason}`)
          }
          failures.push({ section, title, error })
          if (error instanceof NoAnswer) await noteNoAnswer(section, error)
          else late.count = 0
          if (!(error instanceof PlainError)) throw error
          const lines = [
            `${section}: ${title}`,
            error.message,
            ...(goneWords === undefined ? [] : [goneWords]),
          ]
          throw new PlainError(lines.join('\n'))
        }
      })
    },
    hasFailed: (...numbers) => failures.some(({ section }) => numbers.includes(numberOf(section))),
    isGone: () => goneWords !== undefined,
    findUnexplained: () =>
      blocked.find((each) => !failures.some(({ section }) => numberOf(section) === each.section)),
    summarize() {
      if (failures.length < 2 && goneWords === undefined) return undefined
      const causes = groupByCause(failures)
      const lines = causes.slice(0, shownCauses).map(formatCause)
      if (causes.length > shownCauses) lines.push(`And ${causes.length - shownCauses} more causes.`)
      if (blocked.length > 0) lines.push(`${count(blocked.length, 'case')} cannot be judged before that.`)
      if (goneWords !== undefined) lines.push(goneWords)
      if (skippedCount > 0) lines.push(`${count(skippedCount, 'case')} skipped.`)
      const head = `Fix these first: ${count(failures.length, 'failure')}, ${count(causes.length, 'cause')}.`
      return [head, ...lines].join('\n')
    },
  }
}

export function numberOf(section: string): string {
  return section.split(' ', 1)[0] ?? section
}

function groupByCause(failures: readonly Failure[]): readonly (readonly [Failure, ...Failure[]])[] {
  const groups = new Map<string, [Failure, ...Failure[]]>()
  for (const failure of failures) {
    const cause = causeOf(failure.error)
    const group = groups.get(cause)
    if (group === undefined) groups.set(cause, [failure])
    else group.push(failure)
  }
  return [...groups.values()].toSorted((a, b) => b.length - a.length)
}

/** The same for failures that differ only in values, in what was sent, or in which success it was. */
function causeOf(error: unknown): string {
  if (!(error instanceof Finding)) return String(error)
  // An operation that is missing or fails is one cause, whatever was expected of it.
  const [failed] = /^(?:404|405|5\d\d) /.exec(error.received) ?? []
  if (failed !== undefined) return failed
  return [error.expected, error.received].map(generalize).join(' / ')
}

function generalize(text: string): string {
  return text
    .replace(/^2\d\d .*/s, 'success')
    .replace(/^([345]\d\d) .*/s, '$1')
    .replace(/: [1-5]\d\d .*/s, '')
    .replaceAll(/ ?\([^)]*\)/g, '')
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '"…"')
    .replaceAll('animals', 'animal')
    .replaceAll(/-?\d+/g, (digits, at) => (at === 0 && text.length === 3 ? digits : 'N'))
}

function formatCause(group: readonly [Failure, ...Failure[]], index: number): string {
  const [{ title, error }] = group
  const sections = [...new Set(group.map(({ section }) => section))].join(', ')
  const message = (error instanceof Error ? error.message : String(error)).replaceAll(/^(.{199}).+$/gm, '$1…')
  return `${index + 1}. ${sections}: ${count(group.length, 'failure')}, such as "${title}"\n${message}`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
