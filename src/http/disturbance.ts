/**
 * What is done to requests under `/v1` on purpose, for demos and tests: they are held back, and they fail.
 * Knows no operation; what an error code says to a client is for api/refusals.ts.
 */
import { clock } from '../system/clock.ts'
import { describe } from '../text/words.ts'
import { clientGone } from './body.ts'
import { isPreflight } from './cors.ts'
import { type Arrival } from './request.ts'

export const maxDelayMs = 10_000

/** At most this many changes may wait for their requests. */
const maxQueued = 1_000

/** Milliseconds, or a range of them: each request is then held back for a random time. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

export interface Disturbance {
  /**
   * `10%`, `503`, `10%:500,drop`, `POST:after:503`, `unauthorized` or `prefer`, as the setting `fail` has it;
   * `none` ends failures.
   */
  readonly fail?: string | undefined
  /** 0 ends the delay. */
  readonly delayMs?: DelayMs | undefined
  /**
   * For how many requests the change is. It takes the next ones that it concerns, after earlier changes have
   * taken theirs.
   */
  readonly requests?: number | undefined
}

/** One item of `fail`. */
export interface Failure {
  /** The method of the requests that it concerns; undefined for all. */
  readonly method: string | undefined
  /** The failure comes when the store has acted. */
  readonly isAfterStore: boolean
  /** `drop`, `hang`, a status such as `503`, or an error code. */
  readonly outcome: string
  /** The client has asked for it by `Prefer: code=503` (RFC 7240). */
  readonly isAskedFor: boolean
}

interface Failures {
  /** The share of the requests that an item concerns, from 0 to 1. */
  readonly share: number
  readonly items: readonly Failure[]
  /** Whether a request may ask for a failure. */
  readonly mayBeAsked: boolean
}

const noFailures: Failures = { share: 0, items: [], mayBeAsked: false }

const itemPattern = /^(?:(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS):)?(after:)?([45]\d\d|[a-z_]+)$/

const expectedItems =
  'expected items such as 503 (from 400 to 599), unauthorized, drop, hang, prefer, POST:503 or after:drop, or none alone, which ends failures'

/** Splits a text such as `10%:500,prefer`. `percent` is undefined if it names no share. */
function splitFailures(text: string) {
  const [, percent, list = ''] = /^(?:(-?[\d.]+)%(?:$|:(?=.)))?(.*)$/s.exec(text) ?? []
  const isUsual = list === '' && percent !== undefined
  const texts = isUsual ? ['500', '503'] : list.split(',').map((item) => item.trim())
  const items = texts.filter((each) => each !== 'prefer')
  return { percent, share: Number(percent ?? 100) / 100, items, mayBeAsked: texts.includes('prefer') }
}

/** Returns what is wrong with a text, if anything. `codes` are the error codes that an item may name. */
export function findFailuresFault(text: string, codes: readonly string[]): string | undefined {
  if (text === 'none') return undefined
  const { percent, share, items } = splitFailures(text)
  const faults: string[] = []
  if (!(share > 0 && share <= 1))
    faults.push(`expected a share above 0% and up to 100%, or none, which ends failures, got "${percent}%"`)
  for (const item of items) {
    const { outcome } = parseItem(item)
    const isKnown = /^\d|^drop$|^hang$/.test(outcome) || codes.includes(outcome)
    if (!isKnown) faults.push(`${expectedItems}, got ${describe(item)}`)
  }
  if (percent !== undefined && items.length === 0)
    faults.push(`expected failures for the share, as in 10%:503,prefer, got ${describe(text)}`)
  return faults.length === 0 ? undefined : faults.join('; ')
}

function parseItem(item: string): Failure {
  const [, method, after, outcome = ''] = itemPattern.exec(item) ?? []
  return { method, isAfterStore: after !== undefined, outcome, isAskedFor: false }
}

/** The caller has checked the text. */
function parseFailures(text: string): Failures {
  if (text === 'none') return noFailures
  const { share, items, mayBeAsked } = splitFailures(text)
  return { share, items: items.map(parseItem), mayBeAsked }
}

/** An item for GET concerns HEAD, too. */
function concernsMethod({ method }: Failure, arrival: Arrival): boolean {
  return method === undefined || method === arrival.method || (method === 'GET' && arrival.method === 'HEAD')
}

/** Returns the status that a request asks for, but not one in the quotes of another preference. */
function findAskedStatus({ headers }: Arrival): string | undefined {
  const preferences = headers['prefer']?.match(/(?:[^",]|"(?:[^"\\]|\\.?)*(?:"|$))+/gs) ?? []
  for (const preference of preferences) {
    const status = /^\s*code\s*=\s*"?([45]\d\d)"?\s*(?:;|$)/i.exec(preference)?.[1]
    if (status !== undefined) return status
  }
  return undefined
}

/** A change without failures concerns every request, and so does one that ends them. */
function concerns(failures: Failures | undefined, arrival: Arrival): boolean {
  if (failures === undefined || failures === noFailures) return true
  const isAsking = failures.mayBeAsked && findAskedStatus(arrival) !== undefined
  return isAsking || failures.items.some((item) => concernsMethod(item, arrival))
}

function chooseFailure({ share, items, mayBeAsked }: Failures, arrival: Arrival): Failure | undefined {
  const asked = mayBeAsked ? findAskedStatus(arrival) : undefined
  if (asked !== undefined) return { method: undefined, isAfterStore: false, outcome: asked, isAskedFor: true }
  const possible = items.filter((item) => concernsMethod(item, arrival))
  const isChosen = possible.length > 0 && Math.random() < share
  return isChosen ? possible[Math.floor(Math.random() * possible.length)] : undefined
}

/** The caller has checked the texts and numbers. */
export function createDisturbances(atStart: Disturbance) {
  const initial = { failures: parseFailures(atStart.fail ?? 'none'), delayMs: atStart.delayMs ?? 0 }
  let base = initial
  /** Each change holds for the next requests that it concerns. What it does not name is that of the base. */
  const queue: { failures: Failures | undefined; delayMs: DelayMs | undefined; requestsLeft: number }[] = []
  /** The requests that are held back. A stop calls `letGo`. */
  const held = new Map<Arrival, { readonly drop: () => void; readonly letGo: () => void }>()
  let isClosing = false

  function takeChange(arrival: Arrival) {
    const index = queue.findIndex(({ failures }) => concerns(failures, arrival))
    const change = queue[index]
    if (change === undefined) return undefined
    change.requestsLeft--
    if (change.requestsLeft === 0) queue.splice(index, 1)
    return change
  }

  /**
   * Holds a request back for `ms` or, without them, for ever. A stop ends a delay, and drops a request that is
   * held for ever. Rejects with clientGone if the request is dropped: by a stop, by a reset, or when its client
   * goes.
   */
  async function hold(arrival: Arrival, ms?: number): Promise<void> {
    const { client } = arrival
    if (client.destroyed || client.readableEnded === true || (isClosing && ms === undefined)) throw clientGone
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      const drop = (): void => reject(clientGone)
      held.set(arrival, { drop, letGo: ms === undefined ? drop : resolve })
      if (ms !== undefined) timer = clock.setTimeout(resolve, ms)
    }).finally(() => {
      clock.clearTimeout(timer)
      held.delete(arrival)
    })
  }

  return {
    /**
     * Changes what is named. With `requests`, the change waits for those. Throws a TypeError if too many
     * changes wait.
     */
    change({ fail, delayMs, requests }: Disturbance): void {
      const failures = fail === undefined ? undefined : parseFailures(fail)
      if (requests === undefined) {
        base = { failures: failures ?? base.failures, delayMs: delayMs ?? base.delayMs }
        return
      }
      if (queue.length === maxQueued)
        throw new TypeError(`requests: ${maxQueued} changes wait for requests already; reset() clears them`)
      queue.push({ failures, delayMs, requestsLeft: requests })
    },
    /** Goes back to what it was created with, and drops what is held back. */
    reset(): void {
      base = initial
      queue.length = 0
      for (const { drop } of held.values()) drop()
    },
    get isCalm(): boolean {
      return base.failures === noFailures && base.delayMs === 0 && queue.length === 0
    },
    /** Holds the request back, and then returns how it fails, if it does. */
    async holdAndDraw(arrival: Arrival): Promise<Failure | undefined> {
      // A preflight only asks if the request may be sent, so it never fails, and is not counted.
      const isAsking = isPreflight(arrival)
      const change = isAsking ? undefined : takeChange(arrival)
      const failures = change?.failures ?? base.failures
      const delayMs = change?.delayMs ?? base.delayMs
      const [minimum, maximum] = typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs
      if (maximum > 0) await hold(arrival, minimum + Math.random() * (maximum - minimum))
      return isAsking ? undefined : chooseFailure(failures, arrival)
    },
    /** Drops a request whose client has gone. Returns whether it was held back. */
    drop(arrival: Arrival): boolean {
      const found = held.get(arrival)
      found?.drop()
      return found !== undefined
    },
    /** Waits until the client goes, the service stops, or a reset. */
    hang: (arrival: Arrival): Promise<void> => hold(arrival).catch(() => {}),
    /** Ends all delays, and drops what hangs. */
    beginClosing(): void {
      isClosing = true
      for (const { letGo } of held.values()) letGo()
    },
  }
}
