/** Contenders side by side: short slices of load in turn, so that a drift of the machine's speed meets all of them. */
import { setTimeout } from 'node:timers/promises'
import { applyLoad, type Request } from './load.ts'
import type { Server } from './servers.ts'
import { readMachineCpuSeconds } from './usage.ts'

export interface Entrant {
  name: string
  server: Server
  requests: Request[]
  connections: number
  /** Answers it has given in all. */
  answered: number
  /** Puts back what earlier slices have changed. */
  beforeSlice?: () => Promise<unknown>
}

export interface Effort {
  /** How often every process is started anew: code is compiled a little differently each time. */
  generations: number
  /** Rounds in each generation; in a round every contender has one slice. */
  rounds: number
  sliceMs: number
  warmUpMs: number
  /** How often a slice is taken again when other work on the machine disturbed it. */
  repeats: number
  /** How long may still be waited in all for other work to end before a repeat. */
  patience: { leftMs: number }
}

export interface Slice {
  perSecond: number
  /** Answers for each second of processor time of the server; null where the system does not tell. */
  perCpuSecond: number | null
  /** Share of the slice in which the server's main thread had work. */
  busy: number | null
  isDisturbed: boolean
}

/** How many of the slices that count were disturbed by other work on the machine. */
export const disturbance = { slices: 0, disturbed: 0 }

/** From this share of one core on, what others use of the processor is in the figures. */
const disturbingShare = 0.25

export type Race = Map<string, Slice[]>

/** Warms the entrants up and measures them in turn; the slices are added to those of earlier generations. */
export async function race(entrants: Entrant[], effort: Effort, slices: Race): Promise<void> {
  for (const entrant of entrants) await runSlice(entrant, effort.warmUpMs)
  for (let round = 0; round < effort.rounds; round += 1) {
    // Every other round goes backwards: none is always the one after the heaviest.
    for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
      let slice = await runSlice(entrant, effort.sliceMs)
      for (let repeat = 0; slice.isDisturbed && repeat < effort.repeats; repeat += 1) {
        await waitForQuiet(effort.patience)
        slice = await runSlice(entrant, effort.sliceMs)
      }
      disturbance.slices += 1
      if (slice.isDisturbed) disturbance.disturbed += 1
      slices.set(entrant.name, [...(slices.get(entrant.name) ?? []), slice])
    }
  }
}

/** Waits until the machine has next to nothing to do, as long as there is patience: it says so by no event. */
async function waitForQuiet(patience: { leftMs: number }): Promise<void> {
  const lookMs = 200
  for (
    let before = readMachineCpuSeconds();
    before !== null && patience.leftMs > 0;
    patience.leftMs -= lookMs
  ) {
    await setTimeout(lookMs)
    const now = readMachineCpuSeconds()
    if (now === null || (now - before) * 1000 < lookMs * disturbingShare) return
    before = now
  }
}

async function runSlice(entrant: Entrant, ms: number): Promise<Slice> {
  const { server, requests, connections } = entrant
  await entrant.beforeSlice?.()
  const result = await applyLoad({
    port: server.port,
    pid: server.pid,
    requests,
    connections,
    leadMs: 30,
    window: { ms },
  })
  entrant.answered += result.allAnswers
  const usage = result.serverUsage
  return {
    perSecond: result.answers / result.seconds,
    perCpuSecond: usage === null ? null : result.answers / usage.cpuSeconds,
    busy: usage === null ? null : usage.mainThreadSeconds / result.seconds,
    isDisturbed: (result.foreignCpuSeconds ?? 0) > result.seconds * disturbingShare,
  }
}

export interface Comparison {
  ours: number
  other: number
  /** Median of the rounds' ratios, ours to the other, and their quartiles. */
  ratio: number
  quartiles: [number, number]
  /** The same by answers for each second of the server's processor time. */
  cpuRatio: number | null
  /** How busy the servers' main threads were, the least of the two. */
  busy: number | null
  /** Whether other work on the machine disturbed more than half of the rounds. */
  isDisturbed: boolean
}

export function compare(slices: Race, oursName: string, otherName: string): Comparison {
  const ours = slices.get(oursName) ?? []
  const other = slices.get(otherName) ?? []
  const ratios = ours.map((slice, round) => slice.perSecond / (other[round]?.perSecond ?? Number.NaN))
  const cpuRatios = ours.map(
    (slice, round) => (slice.perCpuSecond ?? NaN) / (other[round]?.perCpuSecond ?? NaN),
  )
  const busy = [ours, other].map((each) => median(each.map((slice) => slice.busy ?? NaN)))
  return {
    ours: median(ours.map((slice) => slice.perSecond)),
    other: median(other.map((slice) => slice.perSecond)),
    ratio: median(ratios),
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    cpuRatio: orNull(median(cpuRatios)),
    busy: orNull(Math.min(...busy)),
    isDisturbed:
      ours.filter((slice, round) => slice.isDisturbed || other[round]?.isDisturbed).length * 2 > ours.length,
  }
}

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the share of the values lies, between two of them in proportion. */
export function quantile(values: number[], share: number): number {
  const sorted = Float64Array.from(values).toSorted()
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)] ?? NaN
  const above = sorted[Math.ceil(place)] ?? NaN
  return below + (above - below) * (place - Math.floor(place))
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}
