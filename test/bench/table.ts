/** The rows of the report and how they are printed. */
import type { Comparison } from './race.ts'

export interface Row {
  what: string
  ours: string
  against: string
  other: string
  /** Ours to the other, with its unit where it is not a plain ratio. */
  ratio: string
  /** Quartiles of the rounds. */
  spread: string
  /** The ratio by the server's processor time. */
  byCpu: string
  bar: string
  verdict: 'met' | 'short' | ''
  /** What keeps the verdict from being a firm one. */
  doubt?: string
}

/** A bar that a number has to reach (`least`) or must not pass (`most`). */
export type Bar = { least: number } | { most: number }

export function judge(value: number, bar: Bar | null, unit = ''): Pick<Row, 'bar' | 'verdict'> {
  if (bar === null) return { bar: '', verdict: '' }
  return 'least' in bar
    ? { bar: `≥ ${bar.least}${unit}`, verdict: value >= bar.least ? 'met' : 'short' }
    : { bar: `≤ ${bar.most}${unit}`, verdict: value <= bar.most ? 'met' : 'short' }
}

export function rateRow(what: string, against: string, comparison: Comparison, bar: Bar | null): Row {
  const { ours, other, ratio, quartiles, cpuRatio, busy } = comparison
  return {
    what,
    ours: formatRate(ours),
    against,
    other: formatRate(other),
    ratio: `${formatRatio(ratio)}${busy === null || busy >= 0.9 ? '' : '*'}`,
    spread: quartiles.map(formatRatio).join('–'),
    byCpu: cpuRatio === null ? '-' : formatRatio(cpuRatio),
    ...judge(ratio, bar),
    doubt: doubtOf(comparison),
  }
}

/** Why a comparison may say more about the machine than about the two. */
export function doubtOf({ isDisturbed }: Comparison): string {
  return isDisturbed ? '(disturbed)' : ''
}

export function formatRatio(ratio: number): string {
  return ratio.toFixed(ratio < 100 ? 3 : 1)
}

export function formatRate(perSecond: number): string {
  return `${formatCount(perSecond)}/s`
}

export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}

export function formatMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Aligned columns: numbers to the right, from the column `numbersFrom` to the one before `numbersEnd`; text to the left. */
export function formatTable(lines: string[][], numbersFrom: number, numbersEnd = Infinity): string {
  const widths =
    lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column >= numbersFrom && column < numbersEnd
            ? cell.padStart(widths[column] ?? 0)
            : cell.padEnd(widths[column] ?? 0),
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
    row.spread,
    row.byCpu,
    row.bar,
    `${row.verdict} ${row.doubt ?? ''}`.trim(),
  ])
  return formatTable([head, ...lines], 2, 7)
}
