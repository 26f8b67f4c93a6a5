/** The rows of the report, and how tables are printed. */
import type { Comparison } from './race.ts'

export interface Row {
  what: string
  /** What ours is compared with. */
  against: string
  ours: string
  other: string
  /** Ours to the other, with its unit where it is not a plain ratio. */
  ratio: string
  /** Between which values the middle half of the rounds lies. */
  quartiles: string
  /** The ratio by the server's processor time. */
  byCpuTime: string
  bar: string
  verdict: 'met' | 'missed' | ''
  isDisturbed: boolean
}

/** A bar that a value has to reach (`least`) or must not exceed (`most`). */
export type Bar = { least: number } | { most: number }

export function judge(value: number, bar: Bar | null, unit = ''): Pick<Row, 'bar' | 'verdict'> {
  if (bar === null) return { bar: '', verdict: '' }
  return 'least' in bar
    ? { bar: `≥ ${bar.least}${unit}`, verdict: value >= bar.least ? 'met' : 'missed' }
    : { bar: `≤ ${bar.most}${unit}`, verdict: value <= bar.most ? 'met' : 'missed' }
}

export function rateRow(what: string, against: string, comparison: Comparison, bar: Bar | null): Row {
  const { ours, other, ratio, quartiles, cpuRatio, isDisturbed } = comparison
  return {
    what,
    against,
    ours: formatRate(ours),
    other: formatRate(other),
    ratio: formatRatio(ratio),
    quartiles: quartiles.map(formatRatio).join('–'),
    byCpuTime: formatRatio(cpuRatio),
    ...judge(ratio, bar),
    isDisturbed,
  }
}

export function formatRatio(ratio: number): string {
  return Number.isNaN(ratio) ? '-' : ratio.toFixed(ratio < 100 ? 3 : 1)
}

export function formatRate(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString('en-US')}/s`
}

export function formatMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Aligns the columns: to the left where `alignment` has an `l` at the column's place, to the right where it has an `r`. */
export function formatTable(lines: string[][], alignment: string): string {
  const widths = [...alignment].map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          alignment[column] === 'r' ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function formatRows(rows: Row[]): string {
  const head = ['what', 'against', 'ours', 'other', 'ratio', 'quartiles', 'by CPU time', 'bar', '']
  const lines = rows.map((row) => [
    row.what,
    row.against,
    row.ours,
    row.other,
    row.ratio,
    row.quartiles,
    row.byCpuTime,
    row.bar,
    `${row.verdict}${row.isDisturbed ? ' (disturbed)' : ''}`,
  ])
  return formatTable([head, ...lines], 'llrrrrrll')
}
