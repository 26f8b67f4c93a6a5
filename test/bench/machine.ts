/** Describes the machine on which the figures were measured. */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'

/** Processor, memory, system, Node, and the file system of the folder. */
export function describeMachine(folder: string): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  const memoryGiB = Math.round(totalmem() / 2 ** 30)
  return [
    `${model}, ${availableParallelism()} cores, ${memoryGiB} GiB, ${type()} ${release()}`,
    `Node ${process.versions.node}, data files on ${fileSystemOf(folder)}`,
  ].join('\n')
}

function fileSystemOf(folder: string): string {
  try {
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, point = '']) => `${folder}/`.startsWith(point === '/' ? '/' : `${point}/`))
    // The longest mount point is the file's; of two mounts on the same point, the later one.
    const [, , fileSystem = 'unknown'] = mounts.reduce((best, mount) =>
      (mount[1] ?? '').length >= (best[1] ?? '').length ? mount : best,
    )
    return fileSystem
  } catch {
    return 'an unknown file system'
  }
}
