/**
 * While the data file cannot be used, the pets that are served are kept in a file beside it,
 * `pets.json.kept-2026-11-27T09-00-00.000Z`. Here these files are written and, at a start, found and told of.
 * Any other name, such as `pets.json.kept-old`, is a person's.
 */
import { basename, dirname, join } from 'node:path'
import { formatPetCount, type Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { attempt, systemFailure } from '../system/errors.ts'
import { nameUnseen } from '../text/words.ts'
import { DataFileUnusable } from './data-file-errors.ts'
import { type Disk } from './disk.ts'
import { formatFile, parseUsableFileText } from './file-text.ts'
import { writeBeside, formatTime, temporaryName } from './new-files.ts'

/** Even the shortest pet takes more bytes in a file. */
const minKeptPetBytes = 50

const keepAgainMs = 10_000

interface KeptFile {
  readonly path: string
  /** The time in its name, in milliseconds since 1970. */
  readonly time: number
  /** The path of the data file beside which it lies. */
  readonly place: string
}

export class PetKeeper {
  readonly #disk: Disk
  #paths: readonly string[] = []
  /** These could not be removed yet, since their folder may not be written. */
  #outdated: readonly string[] = []
  /** Why keeping has failed. Until `untilMs` (`clock.performanceNow()`) it is not tried again. */
  #failure: { readonly error: unknown; readonly untilMs: number } | undefined

  constructor(disk: Disk) {
    this.#disk = disk
  }

  /** The files that this run has kept. */
  get paths(): readonly string[] {
    return [...this.#paths, ...this.#outdated]
  }

  /**
   * Keeps these pets, unless that was done already. Returns the names of the files. Throws the system's
   * error, for 10 s without trying again.
   */
  async keep(servedTarget: string, pets: readonly Pet[]): Promise<readonly string[]> {
    if (!this.#paths.some((path) => this.#mayBeThere(path))) {
      if (this.#failure !== undefined && clock.performanceNow() < this.#failure.untilMs)
        throw this.#failure.error
      try {
        this.#paths = await writeKeptFiles(this.#disk, servedTarget, pets)
      } catch (error) {
        this.#failure = { error, untilMs: clock.performanceNow() + keepAgainMs }
        throw error
      }
    }
    return this.#paths.filter((path) => this.#mayBeThere(path)).map((path) => describePath(this.#disk, path))
  }

  forgetFailure(): void {
    this.#failure = undefined
  }

  /**
   * Removes the kept files when the pets are in the data file again, since the next creation would make them
   * out of date. To be called again as long as the pets are there: a file may not be removed at first.
   */
  discard(): void {
    const { paths } = this
    for (const path of paths) this.#disk.remove(path)
    this.#outdated = paths.filter((path) => this.#mayBeThere(path))
    this.#paths = []
    this.#failure = undefined
  }

  /** A folder that may not be searched does not show what is in it. */
  #mayBeThere(path: string): boolean {
    return attempt(() => this.#disk.statIdentity(path) === undefined) !== true
  }
}

/**
 * Writes the pets durably beside the path as it was given, and beside the file that it led to when they were
 * read: a link may lead elsewhere since, or nowhere. One of the two suffices. Returns the paths, or throws
 * the system's error.
 */
async function writeKeptFiles(
  disk: Disk,
  servedTarget: string,
  pets: readonly Pet[],
): Promise<readonly string[]> {
  // A start names the file with the latest time as the one kept last. The clock may have been set back since
  // the last was written, so the new time is never earlier.
  const time = Math.max(clock.now(), findKeptFiles(disk).at(-1)?.time ?? 0)
  const paths: string[] = []
  const failures: unknown[] = []
  for (const place of findKeepingPlaces(disk, servedTarget)) {
    try {
      await disk.makeFolder(dirname(place))
      // Each try would fill a disk that has too little room.
      if (disk.measureRoom(dirname(place)).freeBytes < pets.length * minKeptPetBytes)
        throw systemFailure('ENOSPC')
      paths.push(await writeBeside(disk, place, 'kept', time, formatFile(pets)))
    } catch (error) {
      failures.push(error)
    }
  }
  if (paths.length === 0) throw failures[0]
  return paths
}

/** Returns the places whose folder is there; if none is there any more, that of the path. */
function findKeepingPlaces(disk: Disk, servedTarget: string): readonly string[] {
  const places = [...new Set([disk.findGivenPlace() ?? servedTarget, servedTarget])]
  const found = places.filter((place) => disk.isFolder(dirname(place)))
  return found.length > 0 ? found : places.slice(0, 1)
}

/** Returns the name of a file for messages, with its folder if that is not the folder of the data file. */
function describePath(disk: Disk, path: string): string {
  const isNear = dirname(path) === dirname(disk.findGivenPlace() ?? disk.path)
  return nameUnseen(isNear ? basename(path) : path)
}

/**
 * Returns the oldest first; of two that were kept at the same time, the one beside the path last. Finds none
 * in a folder that may not be listed.
 */
export function findKeptFiles(disk: Disk): readonly KeptFile[] {
  const files: KeptFile[] = []
  for (const place of disk.findPlaces().toReversed())
    attempt(() => {
      const prefix = `${basename(place)}.kept-`
      for (const name of disk.fs.readdirSync(dirname(place))) {
        const time = name.startsWith(prefix) ? parseTime(name.slice(prefix.length)) : undefined
        if (time === undefined) continue
        const path = join(dirname(place), name)
        // A read of a FIFO would wait for somebody who writes into it.
        if (attempt(() => disk.fs.statSync(path).isFile()) === true) files.push({ path, time, place })
      }
    })
  return files.toSorted((a, b) => a.time - b.time)
}

/**
 * Returns the path of what a run was writing when it was ended, if there is any. That may be the pets of a
 * kept file, on a slow disk. A store that began empty would lose them, since it removes that file.
 */
export function findUnfinishedFile(disk: Disk): string | undefined {
  const paths = disk.findPlaces().map(temporaryName)
  return paths.find((path) => attempt(() => disk.statIdentity(path)) !== undefined)
}

/** Returns undefined if the text is no time as formatTime writes it. */
function parseTime(text: string): number | undefined {
  const time = Date.parse(text.replace(/-(\d\d)-(\d\d\.)/, ':$1:$2'))
  return !Number.isNaN(time) && formatTime(time) === text ? time : undefined
}

export function sayKeptFiles(disk: Disk): void {
  for (const { path } of findKeptFiles(disk)) {
    const pets = `${describePetCount(disk, path)} that an earlier run has kept`
    const remedy = `delete it once they are in ${basename(disk.shownPath)}, or not wanted`
    disk.say(`${describePath(disk, path)} has ${pets}; ${remedy}`)
  }
}

/** Returns the error; if there are kept pets, it also says what to do to go on with these or the file. */
export function withKeptPets(disk: Disk, unusable: DataFileUnusable): DataFileUnusable {
  const files = findKeptFiles(disk)
  const last = files.at(-1)
  if (last === undefined) {
    const unfinished = findUnfinishedFile(disk)
    const remedy = `rename it to ${basename(disk.shownPath)} if it has its pets, or else delete it`
    const hint =
      unfinished === undefined
        ? ''
        : `; look into ${describePath(disk, unfinished)} first, which an earlier run was writing when it was ended: ${remedy}`
    return new DataFileUnusable(unusable.message + unusable.startRemedy + hint, unusable.summary)
  }
  const kept = describePath(disk, last.path)
  const name = describePath(disk, last.place)
  const others = new Set(files.map(({ place }) => `each ${describePath(disk, place)}.kept-…`))
  const choice =
    `${kept}, which was kept last, has ${describePetCount(disk, last.path)}; to go on with these, rename ${name}, if it is ` +
    `there, to another name, and then rename ${kept} to ${name}; to go on with ${name}, mend it, or delete it to ` +
    `begin without any pets, and rename ${[...others].join(' and ')} to another name`
  return new DataFileUnusable(`${unusable.message}\n${disk.shownPath}: ${choice}`, unusable.summary)
}

function describePetCount(disk: Disk, path: string): string {
  const text = attempt(() => parseUsableFileText(describePath(disk, path), disk.fs.readFileSync(path)))
  return text === undefined ? 'an unknown number of pets' : formatPetCount(text.pets.length)
}
