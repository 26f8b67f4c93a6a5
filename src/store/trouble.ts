/**
 * Finds why no pet, or not every pet, can be created in a data file, for health and log alike. The looks and
 * the creations report here what they have met; the log is told of it once, and when it is over.
 *
 * | Kind        | What was met                          | It is over                                             |
 * | ----------- | ------------------------------------- | ------------------------------------------------------ |
 * | fault       | the file is wrong, or missing         | when a look succeeds                                   |
 * | unreadable  | the file cannot be read               | when a look succeeds                                   |
 * | notWritable | the file may not be written           | when a look finds that it may                          |
 * | creation    | the disk has failed the last creation | when one succeeds, an edit was read, or a minute later |
 * | room        | the disk has no room for one          | when a look finds room; if looks cannot see it (a quota), after a success or a minute |
 */
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import { type Disk } from '../data-file/disk.ts'
import { clock } from '../system/clock.ts'
import { isNoRoom } from '../system/errors.ts'
import { failureKnownMs, type NoCreationCode, stillServed } from './store.ts'

/** The log is told of a nearly full disk at most so often. */
const tellFullMs = 60_000

const creationsRefused = `no pet can be added until this is fixed; ${stillServed}`

/** These kinds can be found, with what health says of each. */
const codes = {
  fault: 'read_only',
  unreadable: 'storage_failed',
  notWritable: 'read_only',
  creation: 'storage_failed',
  room: 'storage_failed',
} as const satisfies Record<string, NoCreationCode>

const validAgain = 'is valid again, and the pets come from it'

interface Finding {
  readonly kind: keyof typeof codes
  /** For the log; undefined while it is too early for that. */
  readonly words: string | undefined
}

interface LookFailure {
  readonly error: unknown
  /** What became of the pets, as the end of a message; undefined while they are being kept. */
  readonly kept: string | undefined
}

interface CreationFailure {
  readonly error: unknown
  /** By `clock.performanceNow()`. */
  readonly atMs: number
  /** Whether a look at the disk shows that it has no room. */
  readonly isSeenByLooks: boolean
}

export class Trouble {
  readonly #disk: Disk
  readonly #say: (message: string) => void
  #lookFailure: LookFailure | undefined
  #writeError: unknown
  #creationFailure: CreationFailure | undefined
  #told: Finding | undefined
  #toldFullMs = -Infinity

  constructor(disk: Disk, say: (message: string) => void) {
    this.#disk = disk
    this.#say = say
    this.#writeError = disk.findWriteError(true)
    this.#tell()
  }

  /** Returns what is wrong with the text of the data file, if anything is. */
  get dataFileError(): string | undefined {
    const error = this.#lookFailure?.error
    return error instanceof DataFileUnusable ? error.summary : undefined
  }

  /** Returns whether the pets are just being kept, since a look has failed. */
  get isKeeping(): boolean {
    return this.#lookFailure !== undefined && this.#lookFailure.kept === undefined
  }

  get code(): NoCreationCode | undefined {
    const found = this.#find()
    return found && codes[found.kind]
  }

  lookSucceeded(wasRead: boolean): void {
    this.#lookFailure = undefined
    // What was read anew is durable, so the disk works.
    if (wasRead && !isNoRoom(this.#creationFailure?.error)) this.#creationFailure = undefined
    this.#writeError = this.#disk.findWriteError(this.#writeError !== undefined)
    if (this.#hasRoomAgain()) this.#creationFailure = undefined
    this.#tell()
  }

  /**
   * On a slow disk, `keep` takes long. The message waits for what it returns, which is the end of the
   * message; health and lists do not wait.
   */
  async lookFailed(error: unknown, keep: () => Promise<string>): Promise<void> {
    this.#lookFailure = { error, kept: undefined }
    const kept = await keep()
    this.#lookFailure = { error, kept }
    this.#tell()
  }

  creationSucceeded(): void {
    if (this.#creationFailure?.isSeenByLooks !== true || this.#hasRoomAgain())
      this.#creationFailure = undefined
    this.#tell()
  }

  /** Takes a system's error. A cause that looks can see is over as soon as a look sees it no more. */
  creationFailed(error: unknown): void {
    this.#writeError = this.#disk.findWriteError(true)
    const isSeenByLooks = isNoRoom(error) && this.#disk.isFull()
    if (this.#writeError === undefined)
      this.#creationFailure = { error, atMs: clock.performanceNow(), isSeenByLooks }
    this.#tell()
  }

  #hasRoomAgain(): boolean {
    return this.#creationFailure?.isSeenByLooks === true && !this.#disk.isFull()
  }

  #find(): Finding | undefined {
    if (this.#lookFailure !== undefined) return this.#toFinding(this.#lookFailure)
    if (this.#writeError !== undefined) {
      const fault = this.#disk.describeReadOnly(this.#writeError)
      return { kind: 'notWritable', words: `${this.#disk.shownPath}: ${fault}` }
    }
    const failure = this.#creationFailure
    if (failure === undefined) return undefined
    // If looks cannot see the cause, such as a quota, the failure counts for a while only.
    if (!failure.isSeenByLooks && clock.performanceNow() >= failure.atMs + failureKnownMs) return undefined
    const kind = isNoRoom(failure.error) ? 'room' : 'creation'
    return { kind, words: this.#describeCreation(failure.error) }
  }

  #toFinding({ error, kept }: LookFailure): Finding {
    const { shownPath } = this.#disk
    const isFault = error instanceof DataFileUnusable
    const fault = isFault
      ? error.message
      : `${shownPath}: cannot be used: ${this.#disk.describeFailure(error)}`
    const separator = fault.includes('\n') ? `\n${shownPath}: ` : '; '
    const words = kept === undefined ? undefined : `${fault}${separator}${creationsRefused}${kept}`
    return { kind: isFault ? 'fault' : 'unreadable', words }
  }

  #describeCreation(error: unknown): string {
    const reason = this.#disk.describeFailure(error)
    const words = isNoRoom(error)
      ? `has too little room: ${reason}; pets that do not fit are refused`
      : `cannot be used: ${reason}; ${creationsRefused}`
    return `${this.#disk.shownPath}: ${words}`
  }

  #describeEnd(told: Finding): string {
    if (told.kind === 'fault') return validAgain
    // After an old failure, nobody knows whether the next creation would succeed.
    const isOld = isOfCreation(told) && this.#creationFailure !== undefined
    return isOld ? 'no creation has failed for a minute' : 'can be used again'
  }

  /** Says what is found, once, and when it is over. */
  #tell(): void {
    const found = this.#find()
    const told = this.#told
    if (found === undefined) {
      if (told !== undefined) this.#disk.say(this.#describeEnd(told))
      this.#told = undefined
      return
    }
    // Only the first failure of a creation is told.
    const isTold = found.words === told?.words || (isOfCreation(found) && isOfCreation(told))
    if (isTold || found.words === undefined) return
    // A mistake may be mended while the disk has no room.
    const isMended = told?.kind === 'fault' && this.#lookFailure === undefined
    if (isMended) this.#disk.say(validAgain)
    if (found.kind === 'room') {
      // On a disk that is nearly full, one pet finds room, and the next does not.
      const now = clock.performanceNow()
      if (!isMended && now < this.#toldFullMs + tellFullMs) return
      this.#toldFullMs = now
    }
    this.#say(found.words)
    this.#told = found
  }
}

const isOfCreation = (finding: Finding | undefined): boolean =>
  finding?.kind === 'creation' || finding?.kind === 'room'
