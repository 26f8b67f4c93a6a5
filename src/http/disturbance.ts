/** What is done to requests under `/v1` on purpose, for demos and tests: they are held back, and they fail. Knows no operation. */
import { clock } from '../system/clock.ts'
import { type Arrival, clientGone, isPreflight } from './request.ts'
import { errorReply, httpErrors, type Reply } from './response.ts'

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

interface Failure {
  /** The status 0 stands for no response: the connection is closed. */
  readonly reply: Reply
  /** Comes when the store has acted. */
  readonly isAfter: boolean
}

interface Failures {
  /** From 0 to 1. */
  readonly share: number
  readonly kinds: readonly Failure[]
  /** Whether a request may ask for one by `Prefer: code=503` (RFC 7240). */
  readonly mayBeAsked: boolean
}

/** Undefined for a text that is not understood. */
export function parseFailures(text: string): Failures | undefined {
  const [, share, list = ''] = /^(?:(\d{1,3}(?:\.\d{1,3})?)%(?:$|:(?=.)))?(.*)$/s.exec(text) ?? []
  const usual = share === undefined ? [] : ['500', '503']
  const items = list === '' ? usual : list.split(',').map((item) => item.trim())
  const kinds: Failure[] = []
  for (const item of items) {
    const [, after, status = ''] = /^(after:)?(drop|[45]\d\d)$/.exec(item) ?? []
    if (status !== '') kinds.push({ reply: failWith(status), isAfter: after !== undefined })
    else if (item !== 'prefer') return undefined
  }
  if (Number(share) > 100 || (share !== undefined && kinds.length === 0)) return undefined
  return { share: Number(share ?? 100) / 100, kinds, mayBeAsked: items.includes('prefer') }
}

function failWith(status: string, headers: readonly string[] = []): Reply {
  const code = 'failed_on_purpose'
  const reply =
    status === 'drop'
      ? { status: 0, headers }
      : errorReply({ code, message: httpErrors[code].message, status: Number(status), headers })
  return { ...reply, code, isOnPurpose: true }
}

interface State {
  readonly failures: Failures
  readonly delayMs: DelayMs
  /** How many requests it still holds for, and what comes then. */
  left: number
  readonly before: State | undefined
}

const noFailures: Failures = { share: 0, kinds: [], mayBeAsked: false }
const calm: State = { failures: noFailures, delayMs: 0, left: Infinity, before: undefined }

export type Disturbances = ReturnType<typeof createDisturbances>

/** The texts and numbers have been checked. */
export function createDisturbances(atStart: Disturbance) {
  /** Those that are held back, and how each is let go. */
  const held = new Map<Arrival, () => void>()
  let state = calm

  /** What is not named stays, and what was before a change for some requests is changed as well; if nothing is named, all ends. */
  function change({ fail, delayMs, requests }: Disturbance): void {
    const failures = fail === undefined ? undefined : (parseFailures(fail) ?? noFailures)
    const changed = (old: State): State => ({
      failures: failures ?? old.failures,
      delayMs: delayMs ?? old.delayMs,
      left: old.left,
      before: old.before && changed(old.before),
    })
    if (requests !== undefined) state = { ...changed(state), left: requests, before: state }
    else state = failures === undefined && delayMs === undefined ? calm : changed(state)
  }
  change(atStart)
  const first = state

  /** Rejects with clientGone when the client goes before. */
  async function hold(arrival: Arrival, [minimum, maximum]: readonly [number, number]): Promise<void> {
    const { client } = arrival
    if (client.destroyed || client.readableEnded === true) throw clientGone
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve, reject) => {
      timer = clock.setTimeout(resolve, minimum + Math.random() * (maximum - minimum))
      held.set(arrival, resolve)
      arrival.onGone = () => reject(clientGone)
    }).finally(() => {
      clock.clearTimeout(timer)
      held.delete(arrival)
    })
  }

  return {
    change,
    /** Back to what it was created with. */
    reset(): void {
      state = first
    },
    get isCalm(): boolean {
      const { failures, delayMs, before } = state
      const mayFail = failures.mayBeAsked || failures.kinds.length > 0
      return !mayFail && delayMs === 0 && before === undefined
    },
    /** How the request fails, if it does, once it has been held back. */
    async disturb(arrival: Arrival): Promise<Failure | undefined> {
      const { failures, delayMs, before } = state
      const isAsking = isPreflight(arrival)
      if (!isAsking && --state.left === 0 && before !== undefined) state = before
      if (delayMs !== 0) await hold(arrival, typeof delayMs === 'number' ? [delayMs, delayMs] : delayMs)
      if (isAsking) return undefined
      const [, asked] =
        /(?:^|,)\s*code\s*=\s*"?([45]\d\d)"?\s*(?:$|[;,])/i.exec(arrival.headers['prefer'] ?? '') ?? []
      if (failures.mayBeAsked && asked !== undefined)
        return { reply: failWith(asked, ['Preference-Applied', `code=${asked}`]), isAfter: false }
      const { kinds, share } = failures
      return Math.random() < share ? kinds[Math.floor(Math.random() * kinds.length)] : undefined
    },
    /** Ends all delays now. */
    end(): void {
      for (const release of held.values()) release()
    },
  }
}
