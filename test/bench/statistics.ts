/** Medians and quantiles of what was measured. */

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the share (0 to 1) of the values lies, interpolated between the two nearest. */
export function quantile(values: number[], share: number): number {
  const sorted = Float64Array.from(values).toSorted()
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)] ?? NaN
  const above = sorted[Math.ceil(place)] ?? NaN
  return below + (above - below) * (place - Math.floor(place))
}

export function quartiles(values: number[]): [number, number] {
  return [quantile(values, 0.25), quantile(values, 0.75)]
}
