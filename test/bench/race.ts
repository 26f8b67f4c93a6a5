/**
 * Compares servers side by side: each gets a short slice of load in turn, round after round, so that a change of the
 * machine's speed meets all of them alike. What counts is the ratio within a round.
 */
import { applyLoad, type Load, type Window } from './load.ts'
import type { Server } from './servers.ts'
import { median, quartiles } from './statistics.ts'

/** A running server in a race, ours or a contender, with the load that it gets. */
export interface Entrant {
  name: string
  server: Server
  requests: Load['requests']
  connections: number
  /** How many pets it has created since it started. */
  created: number
  /** Undoes what earlier slices have changed. */
  beforeSlice?: () => Promise<unknown>
}

export interface Effort {
  /** How often all servers are started anew: the same code is compiled a little differently each time. */
  generations: number
  /** Rounds in each generation; in a round every entrant has one slice. */
  rounds: number
  slice: Window
  warmUp: Window
  /** How often a slice is measured again when other work on the machine disturbed it. */
  repeats: number
}

export interface Slice {
  perSecond: number
  /** Responses for each second of processor time of the server; NaN where the system does not tell. */
  perCpuSecond: number
  isDisturbed: boolean
}

/** The slices of each entrant by its name, in the order of the rounds. */
export type Race = Map<string, Slice[]>

/** Other work disturbs a slice when it uses more than this share of one core. */
const disturbingShare = 0.25

/** Races the servers that `start` starts, in as many generations as the effort has; `check` judges each at its end. */
export async function raceGenerations(
  effort: Effort,
  start: () => Promise<Entrant[]>,
  check: (entrants: Entrant[]) => Promise<void> = async () => {},
): Promise<Race> {
  const race: Race = new Map()
  for (let generation = 0; generation < effort.generations; generation += 1) {
    const entrants = await start()
    await runRounds(entrants, effort, race)
    await check(entrants)
    await Promise.all(entrants.map(({ server }) => server.stop()))
  }
  return race
}

/** Warms the entrants up, runs the rounds, and adds the slices to the race. */
export async function runRounds(entrants: Entrant[], effort: Effort, race: Race): Promise<void> {
  for (const entrant of entrants) await runSlice(entrant, effort.warmUp)
  for (let round = 0; round < effort.rounds; round += 1) {
    // Every other round goes backwards, so that no entrant always follows the heaviest one.
    for (const entrant of round % 2 === 0 ? entrants : entrants.toReversed()) {
      let slice = await runSlice(entrant, effort.slice)
      for (let repeat = 0; slice.isDisturbed && repeat < effort.repeats; repeat += 1) {
        slice = await runSlice(entrant, effort.slice)
      }
      race.set(entrant.name, [...(race.get(entrant.name) ?? []), slice])
    }
  }
}

async function runSlice(entrant: Entrant, window: Window): Promise<Slice> {
  const { server, requests, connections } = entrant
  await entrant.beforeSlice?.()
  const { port, pid } = server
  const result = await applyLoad({ port, pid, requests, connections, leadMs: 30, window })
  entrant.created += result.created
  return {
    perSecond: result.responses / result.seconds,
    perCpuSecond: result.responses / result.serverCpuSeconds,
    isDisturbed: result.otherCpuSeconds > result.seconds * disturbingShare,
  }
}

export interface Comparison {
  /** Responses per second, the medians of the rounds. */
  ours: number
  other: number
  /** Ours to the other in responses per second: median and quartiles of the rounds' ratios. */
  ratio: number
  quartiles: [number, number]
  /** Ours to the other in responses for each second of the server's processor time. */
  cpuRatio: number
  /** Whether other work on the machine disturbed more than half of the rounds. */
  isDisturbed: boolean
}

export function compare(race: Race, oursName: string, otherName: string): Comparison {
  const others = race.get(otherName) ?? []
  const rounds = (race.get(oursName) ?? []).map((ours, round) => {
    const other = others[round]
    if (other === undefined) throw new Error(`${otherName} has no round ${round}`)
    return { ours, other }
  })
  const ratios = rounds.map(({ ours, other }) => ours.perSecond / other.perSecond)
  return {
    ours: median(rounds.map(({ ours }) => ours.perSecond)),
    other: median(rounds.map(({ other }) => other.perSecond)),
    ratio: median(ratios),
    quartiles: quartiles(ratios),
    cpuRatio: median(rounds.map(({ ours, other }) => ours.perCpuSecond / other.perCpuSecond)),
    isDisturbed:
      rounds.filter(({ ours, other }) => ours.isDisturbed || other.isDisturbed).length * 2 > rounds.length,
  }
}
