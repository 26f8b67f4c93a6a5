/** What processes use of processor and memory, as Linux tells it; NaN on another system. */
import { readdirSync, readFileSync } from 'node:fs'

/** Processor time that all threads of a process have used. */
export function readCpuSeconds(pid: number): number {
  try {
    // The scheduler counts nanoseconds; /proc/<pid>/stat counts ticks of 10 ms, too coarse for half a second.
    return readdirSync(`/proc/${pid}/task`)
      .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1'))
      .reduce((seconds, counters) => seconds + Number(counters.split(' ', 1)) / 1e9, 0)
  } catch {
    return NaN
  }
}

/** Processor time that the whole machine has used, kernel included. */
export function readMachineCpuSeconds(): number {
  try {
    const [, ticks = ''] = /^cpu +(.+)$/m.exec(readFileSync('/proc/stat', 'latin1')) ?? []
    const [user = NaN, nice = NaN, system = NaN, , , irq = 0, softIrq = 0, steal = 0] = ticks
      .split(' ')
      .map(Number)
    return (user + nice + system + irq + softIrq + steal) / 100
  } catch {
    return NaN
  }
}

/** The most memory that a process has had resident so far. */
export function readPeakBytes(pid: number): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return Number(kilobytes) * 1024
  } catch {
    return NaN
  }
}
