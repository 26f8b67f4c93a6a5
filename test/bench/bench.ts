/** What every part of the benchmark is given. */
import type { Effort } from './race.ts'

export interface Bench {
  /** The built server, `dist/server.js` unless another was named. */
  serverFile: string
  /** Where the data files are: on a disk, since durable writes are measured. */
  folder: string
  effort: Effort
  isQuick: boolean
}
