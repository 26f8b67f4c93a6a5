/** Which places of the source a run has come to, by the reports that Node writes into the folder of NODE_V8_COVERAGE. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A part of a text, as offsets, and how often it was executed. What is inside another one counts for itself. */
interface Range {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}

/** The part of a report that is read here. Its form is V8's. */
interface Report {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly ranges: readonly Range[] }[]
  }[]
}

export class Coverage {
  /** By path from the project on, the ranges of each process that has loaded the file. */
  readonly #loads = new Map<string, (readonly Range[])[]>()

  /** Reads the reports in a folder. `home` is the URL of the project, with a slash at its end. */
  constructor(folder: string, home: string) {
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), 'utf8')
      // A program that was killed may have written half of its report.
      if (!text.endsWith('}')) continue
      const { result } = JSON.parse(text) as Report
      for (const { url, functions } of result.filter((script) => script.url.startsWith(`${home}src/`))) {
        const path = url.slice(home.length).replace(/\?.*/, '')
        const source = readFileSync(new URL(path, home), 'utf8')
        const loads = this.#loads.get(path) ?? []
        this.#loads.set(path, loads)
        loads.push(functions.flatMap(({ ranges }) => chooseSure(ranges, source)))
      }
    }
  }

  reaches(path: string, offset: number): boolean {
    return (this.#loads.get(path) ?? []).some((ranges) => isExecuted(ranges, offset))
  }
}

/**
 * Of a function's ranges, those with a sure count. The first is the whole function. Where it waits in a part that is skipped, as in
 * `known ?? (await read())`, V8 takes what comes behind that for skipped as well.
 */
function chooseSure(ranges: readonly Range[], source: string): readonly Range[] {
  const { startOffset, endOffset } = ranges[0] ?? { startOffset: 0, endOffset: 0 }
  return /\b(?:await|yield)\b/.test(source.slice(startOffset, endOffset)) ? ranges.slice(0, 1) : ranges
}

/** By the smallest range around the offset. */
function isExecuted(ranges: readonly Range[], offset: number): boolean {
  const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset)
  const lengths = around.map(({ startOffset, endOffset }) => endOffset - startOffset)
  const shortest = Math.min(...lengths)
  return around.some(({ count }, index) => lengths[index] === shortest && count > 0)
}
