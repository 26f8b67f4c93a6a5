/** What is done to requests under `/v1` on purpose, for demos and tests: they are held back, and they fail. Knows no operation. */
import { clock } from '../system/clock.ts'
import { type Arrival, clientGone } from './request.ts'

/** The longest delay that can be set. */
export const maxDelayMs = 10_000

/** Milliseconds, or a range of them: each request is then held back for a random time. */
export type DelayMs = number | readonly [minimum: number, maximum: number]

export interface Disturbance {
  /** `10%`, `503`, `10%:500,drop`, `100%:after:503` or `10%:503,prefer`, as the setting `fail` has it; an empty text ends failures. */
  readonly fail?: string | undefined
  readonly delayMs?: DelayMs | undefined
  /** For so many requests; then what was before comes back. */
  readonly requests?: number | undefined
}

export interface Failure {
  /** `drop`: the connection is closed without a response. */
  readonly status: number | 'drop'
  /** Comes when the store has acted. */
  readonly isAfter: boolean
  /** The request has asked for it. */
  readonly isAsked?: boolean
}

interface Failures {
  /** From 0 to 1. */
  readonly share: number
  readonly kinds: readonly Failure[]
  /** Whether a request may ask for one by `Prefer: code=503` (RFC 7240). */
  readonly mayBeAsked: boolean
}

/** Undefined for a text that says no failures. */
export function parseFailures(text: string): Failures | undefined {
  const [, share, list = ''] = /^(?:(\d{1,3}(?:\.\d{1,3})?)%(?:$|:(?=.)))?(.*)$/s.exec(text) ?? []
  const usual = share === undefined ? [] : ['500', '503']
  const items = list === '' ? usual : list.split(',').map((item) => item.trim())
  const kinds: Failure[] = []
  for (const item of items) {
    const [, after, status = ''] = /^(after:)?(drop|[45]\d\d)$/.exec(item) ?? []
    if (status !== '')
      kinds.push({ status: status === 'drop' ? status : Number(status), isAfter: after !== undefined })
    else if (item !== 'prefer') return undefined
  }
  if (Number(share) > 100 || (share !== undefined && kinds.length === 0)) return undefined
  return { share: Number(share ?? 100) / 100, kinds, mayBeAsked: items.includes('prefer') }
}

interface State {
  readonly failures: Failures
  readonly delayMs: DelayMs
  /** How many requests it still holds for, and what comes then. */
  left: number
  readonly before?: State
}

const noFailures: Failures = { share: 0, kinds: [], mayBeAsked: false }
const calm: State = { failures: noFailures, delayMs: 0, left: Infinity }

export type Disturbances = ReturnType<typeof createDisturbances>

/** The texts and numbers have been checked. */
export function createDisturbances({ fail, delayMs }: Disturbance) {
  const held = new Set<() => void>()
  let state = calm

  /** What is not named stays, and what was before a change for some requests is changed as well; if nothing is named, all ends. */
  function change({ fail: text, delayMs: ms, requests }: Disturbance): void {
    const named = text === undefined ? undefined : (parseFailures(text) ?? noFailures)
    const changed = (old: State): State => ({
      failures: named ?? old.failures,
      delayMs: ms ?? old.delayMs,
      left: old.left,
      ...(old.before && { before: changed(old.before) }),
    })
    if (requests !== undefined) state = { ...changed(state), left: requests, before: state }
    else if (named === undefined && ms === undefined) state = calm
    else state = changed(state)
    const { failures, delayMs: delay, before } = state
    if (before === undefined && failures.kinds.length === 0 && !failures.mayBeAsked && delay === 0)
      state = calm
  }
  change({ fail, delayMs })
  const first = state

  return {
    change,
    /** Back to what it was created with. */
    reset(): void {
      state = first
    },
    get isCalm(): boolean {
      return state === calm
    },
    /** How the request fails, if it does, once it has been held back. Rejects with clientGone when the client goes before. */
    async disturb(arrival: Arrival, isPreflight: boolean): Promise<Failure | undefined> {
      const { failures, delayMs: ms, before } = state
      if (!isPreflight && --state.left === 0 && before !== undefined) state = before
      if (ms !== 0) await hold(arrival, ms)
      if (isPreflight) return undefined
      const [, asked] =
        /(?:^|,)\s*code\s*=\s*"?([45]\d\d)"?\s*(?:$|[;,])/i.exec(arrival.headers['prefer'] ?? '') ?? []
      if (failures.mayBeAsked && asked !== undefined)
        return { status: Number(asked), isAfter: false, isAsked: true }
      return Math.random() < failures.share
        ? failures.kinds[Math.floor(Math.random() * failures.kinds.length)]
        : undefined
    },
    /** Ends all delays now. */
    end(): void {
      for (const release of held) release()
    },
  }

  function hold(arrival: Arrival, ms: DelayMs): Promise<void> {
    const [minimum, maximum] = typeof ms === 'number' ? [ms, ms] : ms
    const { client } = arrival
    if (client.destroyed || client.readableEnded === true) return Promise.reject(clientGone)
    return new Promise((resolve, reject) => {
      const release = (): void => {
        held.delete(release)
        clock.clearTimeout(timer)
        arrival.onGone = undefined
        resolve()
      }
      const timer = clock.setTimeout(release, minimum + Math.random() * (maximum - minimum))
      held.add(release)
      arrival.onGone = () => {
        reject(clientGone)
        release()
      }
    })
  }
}
