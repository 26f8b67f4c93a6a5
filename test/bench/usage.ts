/** What a process uses of processor and memory, as Linux tells it; null on another system. */
import { readdirSync, readFileSync } from 'node:fs'

export interface Usage {
  /** Processor time of all threads. */
  cpuSeconds: number
  /** Time in which the main thread ran or was ready to: all of the wall clock when it never waits for work. */
  mainThreadSeconds: number
}

/** Nanosecond counters of the scheduler; the clock ticks of `/proc/<pid>/stat` are too coarse for short windows. */
export function readUsage(pid: number): Usage | null {
  try {
    let cpuSeconds = 0
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      cpuSeconds += readSchedule(`/proc/${pid}/task/${thread}/schedstat`).ranSeconds
    }
    const main = readSchedule(`/proc/${pid}/schedstat`)
    return { cpuSeconds, mainThreadSeconds: main.ranSeconds + main.waitedSeconds }
  } catch {
    return null
  }
}

/** Processor time that all processes of the machine have used, kernel included. */
export function readMachineCpuSeconds(): number | null {
  try {
    // Ticks of 10 ms: user, nice, system, idle, iowait, irq, softirq, steal.
    const [user, nice, system, , , irq, softIrq, steal] = readFileSync('/proc/stat', 'latin1')
      .slice('cpu  '.length, 200)
      .split(' ', 8)
      .map(Number)
    return (
      [user, nice, system, irq, softIrq, steal].reduce((sum: number, ticks) => sum + (ticks ?? 0), 0) / 100
    )
  } catch {
    return null
  }
}

function readSchedule(path: string) {
  const [ran, waited] = readFileSync(path, 'latin1').split(' ')
  return { ranSeconds: Number(ran) / 1e9, waitedSeconds: Number(waited) / 1e9 }
}

/** The most memory the process has had resident so far, in bytes. */
export function readPeakBytes(pid: number): number | null {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return kilobytes === undefined ? null : Number(kilobytes) * 1024
  } catch {
    return null
  }
}
