/**
 * The data file as lowdb's adapter. `write` appends in place; `read` returns what a person has edited, once
 * the save is complete. Both leave alone what somebody else has written meanwhile. While the file cannot be
 * used, the pets that are served are kept beside it.
 *
 * | State        | What is known                                         | A write             | A look, twice a second |
 * | ------------ | ----------------------------------------------------- | ------------------- | ---------------------- |
 * | unread       | somebody else has written it, or nothing was read yet | asks for a read     | it has to be read      |
 * | known        | the file is as it was last read or written here       | appends             | if it differs: unread  |
 * | half-written | a failed append may have left some bytes in the file  | rolls it back first | rolls it back: unread  |
 * | unusable     | as it is, it cannot be used                           | asks for a read     | if it differs, or may be rewritten now: unread |
 *
 * A read leads from unread to known or to unusable. The file stays unread if it cannot be read now, or is too
 * large to be read. Only #become changes the state. These outlast a state: the pets that are served, the
 * highest id that was given, that a sync has failed, that a rewrite has left the old file aside, and how many
 * rewrites in a row have met an edit.
 */
import { basename } from 'node:path'
import type { Adapter } from 'lowdb'
import type { Int64 } from '../json/int64.ts'
import type { Pet } from '../pet/pet.ts'
import { clock } from '../system/clock.ts'
import { attempt, errorCode, isWriteRefused, systemFailure } from '../system/errors.ts'
import { append, endOf, type FileEnd, formatAppend, type HalfWritten, rollBack } from './appender.ts'
import type { Damage } from './damage.ts'
import { DataFileChanged, DataFileUnusable, isChanged } from './data-file-errors.ts'
import { type Disk, type Identity, isSame, seemsUnedited } from './disk.ts'
import type { Release } from './file-lock.ts'
import { type FileText, formatFile, formatWithIds } from './file-text.ts'
import { PetKeeper } from './kept-pets.ts'
import { canBeReadAtOnce, refuseTooLarge } from './memory-limits.ts'
import { removeLeftovers, restoreOldFile, rewriteFile, writeBeside } from './new-files.ts'
import { findRemedy, type FoundText, measureFile, readText, readUntilSettled } from './reading.ts'

/**
 * On some mounts a renamed file has another inode, so that each rewrite seems to meet an edit. After this
 * many in a row, the file is unusable.
 */
const maxChangedRewrites = 10

/**
 * An edit that makes the file larger than twice its size and this many bytes may not fit into memory (see
 * #keepBeforeLargeRead).
 */
const maxGrownBytes = 2 ** 20

/**
 * An append that would make the file larger is refused, since Node reads at most this many bytes in one piece
 * (https://nodejs.org/api/errors.html#err_fs_file_too_large).
 */
const maxFileBytes = 2 ** 31 - 1

type State =
  | { readonly is: 'unread' }
  | { readonly is: 'known'; readonly end: FileEnd }
  | { readonly is: 'half-written'; readonly end: FileEnd; readonly halfWritten: HalfWritten }
  | {
      readonly is: 'unusable'
      readonly identity: Identity | undefined
      readonly error: DataFileUnusable
      /** The cause may be gone without another edit: a right to write was lacking, or a program held the file. */
      readonly mayPass: boolean
    }

/** What lowdb holds: the pets by ascending id. */
export interface PetData {
  pets: Pet[]
}

interface Served {
  readonly data: PetData
  /** The number of pets in the file. Those behind them are being created. */
  count: number
  /** The identity of the file when it was last read or written here. */
  identity: Identity | undefined
  /** Where the path led when the file was read: a link may lead elsewhere since. */
  readonly target: string
}

/** An append was tried and has failed; `cause` is the system's error or a DataFileChanged. */
export class AppendFailed extends Error {
  /** A byte of its pets has reached the file. So they may be there, or in an editor that has read them. */
  readonly hasWritten: boolean

  constructor(cause: unknown, hasWritten: boolean) {
    super('the pets could not be appended', { cause })
    this.hasWritten = hasWritten
  }
}

export class DataFile implements Adapter<PetData> {
  readonly #disk: Disk
  readonly #release: Release
  readonly #keeper: PetKeeper
  #highestGivenId: Int64 = 0
  #state: State = { is: 'unread' }
  /** Undefined until the first read has succeeded. */
  #served: Served | undefined
  /**
   * Linux reports a failed sync once, and may forget the bytes: the next sync would succeed without them
   * (https://lwn.net/Articles/752063/). So the file has to be rewritten.
   */
  #hasFailedSync = false
  #changedRewrites = 0
  /** A rewrite has failed halfway: no file is at the path, and the old one lies beside it. */
  #isOldAside = false

  constructor(disk: Disk, release: Release) {
    this.#disk = disk
    this.#release = release
    this.#keeper = new PetKeeper(disk)
  }

  /**
   * The highest id of any pet that was read, or of which a byte was written. A new pet gets a higher one, so
   * that the id of a removed pet is not given again in this run.
   */
  get highestGivenId(): Int64 {
    return this.#highestGivenId
  }

  #become(state: State): void {
    this.#state = state
    if (state.is === 'known' && this.#served !== undefined) this.#served.identity = state.end.identity
  }

  /**
   * Returns whether the file has to be read, and `touched` if it seems to have nothing new: another mode, or
   * a name that was changed and changed back. Throws what makes it unusable, or the system's error if a
   * failed append cannot be undone.
   */
  async look(): Promise<'same' | 'touched' | 'edited'> {
    if (this.#state.is === 'half-written') {
      await this.#rollBack()
      // An append and its roll-back had failed, and now the roll-back has worked, or met an edit. The file is
      // read before creations go on: a disk that has failed may fail to read, too.
      this.#become({ is: 'unread' })
    }
    const state = this.#state
    const now = this.#disk.statIdentity()
    if (state.is === 'unusable') {
      const mayBeRewritten = state.mayPass && this.#disk.findRewriteError() === undefined
      if (isSame(now, state.identity) && !mayBeRewritten) throw state.error
      this.#become({ is: 'unread' })
      return 'edited'
    }
    if (state.is === 'known' && isSame(now, state.end.identity)) {
      this.#keeper.discard()
      return 'same'
    }
    this.#become({ is: 'unread' })
    return seemsUnedited(now, this.#served?.identity) ? 'touched' : 'edited'
  }

  /** Throws a DataFileUnusable or a system error. */
  read(): Promise<PetData> {
    return readUntilSettled(this.#disk, this.#served === undefined, () => this.#readOnce())
  }

  /**
   * Reads the file. If it cannot stay as it is (a damaged end, missing ids, a failed sync), rewrites it
   * durably and reads it once more: then it has to be as it was written. Throws a DataFileChanged when it has
   * to be read again in a moment.
   */
  async #readOnce(): Promise<PetData> {
    let written: Buffer | undefined
    for (;;) {
      const fileBytes = measureFile(this.#disk)
      refuseTooLarge(this.#disk, fileBytes)
      await this.#keepBeforeLargeRead(fileBytes)
      const found = await readText(this.#disk, this.#highestGivenId)
      const { text, identity, unusable } = found
      // What was written anew is durable. Where anything else is read, somebody has saved it since.
      if (written?.equals(text.bytes) === false) throw new DataFileChanged()
      if (unusable !== undefined) written = await this.#recover(found, unusable)
      else if (text.filledIds.length === 0 && (written !== undefined || (await this.#sync())))
        return this.#serve(identity, text)
      else {
        // To read 100,000 pets and fill in their ids takes long, so other requests are served in between.
        await new Promise(clock.setImmediate)
        written = await this.#rewrite(identity, formatWithIds(text))
      }
    }
  }

  /**
   * A wrong file that was copied over ours may be so large that reading it ends the process. So the pets are
   * kept before a much larger file is read. Where they cannot be kept, only a file is read that surely fits
   * beside them.
   */
  async #keepBeforeLargeRead(fileBytes: number): Promise<void> {
    const servedBytes = Number(this.#served?.identity?.size ?? 0n)
    if (this.#served === undefined || fileBytes <= 2 * servedBytes + maxGrownBytes) return
    try {
      await this.keepPets()
    } catch (error) {
      if (canBeReadAtOnce(fileBytes)) return
      const fault = `is so large that it is read only when the pets are kept: ${this.#disk.describeFailure(error)}`
      throw DataFileUnusable.ofFile(this.#disk.shownPath, fault)
    }
  }

  /**
   * Returns what the file was rewritten with, or throws `unusable`. Throws a DataFileChanged when the file
   * has to be read again.
   */
  async #recover(found: FoundText, unusable: DataFileUnusable): Promise<Buffer> {
    const { identity } = found
    const remedy = await findRemedy(this.#disk, found, this.#served === undefined, this.#keeper.paths)
    if (remedy === 'restore') {
      const isRestored = await restoreOldFile(this.#disk)
      if (isRestored)
        this.#disk.say('restored: a crash had interrupted the server while it rewrote this file')
      throw new DataFileChanged()
    }
    if (this.#isOldAside && (await restoreOldFile(this.#disk))) throw new DataFileChanged()
    if (remedy === 'create') return this.#rewrite(undefined, Buffer.concat([...formatFile([])]))
    if (remedy !== 'none') return this.#repair(identity, remedy)
    this.#become({ is: 'unusable', identity, error: unusable, mayPass: false })
    throw unusable
  }

  /**
   * Appends the pets that are not in the file yet, and returns when they are durable. Throws an AppendFailed.
   * Before the append, throws a DataFileChanged when the file has to be read first, or the system's error.
   * Only a person changes and removes pets, so anything but new pets is a TypeError.
   */
  async write(data: PetData): Promise<void> {
    const served = this.#served
    const added = data.pets.slice(served?.count)
    const last = added.at(-1)
    if (served?.data !== data || last === undefined)
      throw new TypeError('only new pets can be written, behind those that were read')
    // 1. Bring the file into a state that is known.
    await this.#rollBack()
    const state = this.#state
    if (state.is !== 'known') throw new DataFileChanged()
    const bytes = formatAppend(added, served.count === 0)
    if (state.end.petsEnd + bytes.length > maxFileBytes) throw systemFailure('EFBIG')
    // 2. Append.
    const outcome = await append(this.#disk, state.end, bytes)
    if (outcome.is === 'durable') {
      this.#become({ is: 'known', end: outcome.end })
      served.count += added.length
      this.#highestGivenId = last.id
      return
    }
    // 3. An editor may have read these pets while their bytes were there, and may save them at any time. So their ids count as given.
    const { error, hasWritten, halfWritten, hasSyncFailed } = outcome
    if (hasSyncFailed) this.#noteFailedSync(error)
    if (hasWritten) this.#highestGivenId = last.id
    // 4. Undo what a failed append has left. What cannot be undone now is undone by the next look or write.
    if (isChanged(error)) this.#become({ is: 'unread' })
    else if (halfWritten !== undefined) {
      this.#become({ is: 'half-written', end: state.end, halfWritten })
      await this.#rollBack().catch(() => {})
    }
    throw new AppendFailed(error, hasWritten)
  }

  /**
   * Leads from half-written to known or, if somebody else has written the file, to unread. Throws the
   * system's error if it cannot.
   */
  async #rollBack(): Promise<void> {
    if (this.#state.is !== 'half-written') return
    const { end, halfWritten } = this.#state
    const outcome = await rollBack(this.#disk, end, halfWritten)
    if (outcome.is === 'durable') {
      // A sync that has failed was one of the append's own bytes. The roll-back has written over them, and
      // synced that.
      this.#hasFailedSync = false
      this.#become({ is: 'known', end: outcome.end })
      this.#keeper.discard()
      return
    }
    if (outcome.is === 'unread') {
      this.#become({ is: 'unread' })
      return
    }
    if (outcome.hasSyncFailed) this.#noteFailedSync(outcome.error)
    if (isChanged(outcome.error)) this.#become({ is: 'unread' })
    else {
      this.#become({ is: 'half-written', end, halfWritten: outcome.halfWritten ?? halfWritten })
      throw outcome.error
    }
  }

  /**
   * Keeps the pets that are served, unless they are in the file, or kept already. Returns the names of the
   * kept files, none if none is needed. Throws what PetKeeper.keep throws.
   */
  async keepPets(): Promise<readonly string[]> {
    const served = this.#served
    if (served === undefined || served.data.pets.length === 0 || this.#isServedOnDisk(served)) return []
    return this.#keeper.keep(served.target, served.data.pets)
  }

  /** Makes the next `keepPets` try again at once. */
  forgetKeepFailure(): void {
    this.#keeper.forgetFailure()
  }

  /**
   * Returns whether the file still has the pets that are served, even if it cannot be read now. One that was
   * read and is wrong may have its old size and time.
   */
  #isServedOnDisk({ identity }: Served): boolean {
    if (this.#state.is === 'unusable') return false
    return attempt(() => seemsUnedited(this.#disk.statIdentity(), identity)) === true
  }

  /** The last look has undone what it could. The rest is for the next start. */
  close(): Promise<void> {
    return this.#release()
  }

  async #sync(): Promise<boolean> {
    if (this.#hasFailedSync) return false
    try {
      await this.#disk.syncFile()
    } catch (error) {
      if (errorCode(error) === 'ENOENT') throw new DataFileChanged()
      this.#noteFailedSync(error)
    }
    return !this.#hasFailedSync
  }

  /**
   * Remembers that a sync has failed, since the pets that were read may not be on the disk. If the file only
   * may not be written, that is no such failure: Linux may make a file system read-only after an error, and
   * Windows refuses a file that another program holds.
   */
  #noteFailedSync(error: unknown): void {
    if (errorCode(error) !== 'EROFS' && !this.#disk.mayBeInUse(error)) this.#hasFailedSync = true
  }

  #serve(identity: Identity | undefined, text: FileText): PetData {
    const target = this.#disk.findTarget()
    removeLeftovers(this.#disk)
    this.#isOldAside = false
    // lowdb and #served must hold the same array, so nothing that can fail comes between.
    const { pets } = text
    this.#served = { data: { pets }, count: pets.length, identity, target }
    this.#become({ is: 'known', end: endOf(text, identity) })
    this.#keeper.discard()
    const highestListedId = pets.at(-1)?.id ?? 0
    if (highestListedId > this.#highestGivenId) this.#highestGivenId = highestListedId
    return this.#served.data
  }

  async #rewrite(expected: Identity | undefined, next: Buffer): Promise<Buffer> {
    const outcome = await rewriteFile(this.#disk, expected, next)
    if (outcome.is === 'failed') {
      const { error, isOldAside } = outcome
      if (isOldAside) this.#isOldAside = true
      if (isChanged(error)) this.#changedRewrites++
      const obstacle = expected === undefined ? undefined : this.#findObstacle(error)
      if (obstacle === undefined) throw error
      this.#changedRewrites = 0
      const unusable = this.#disk.rewriteRefusal(obstacle.words)
      const identity = this.#disk.statIdentity()
      this.#become({ is: 'unusable', identity, error: unusable, mayPass: obstacle.mayPass })
      throw unusable
    }
    this.#changedRewrites = 0
    this.#hasFailedSync = false
    return next
  }

  /**
   * Returns what keeps the file from being rewritten, if it is none of the disk's failures.
   *
   * | Cause                                     | It is tried again            |
   * | ----------------------------------------- | ---------------------------- |
   * | it changes whenever it is moved           | when somebody has written it |
   * | it is a mount of its own                  | when somebody has written it |
   * | it, or its folder, is read-only, or held  | by a look that may write it  |
   */
  #findObstacle(error: unknown): { words: string; mayPass: boolean } | undefined {
    const code = errorCode(error)
    if (isChanged(error)) {
      if (this.#changedRewrites < maxChangedRewrites) return undefined
      return { words: 'is another file whenever it is moved', mayPass: false }
    }
    if (code === 'EBUSY' && !this.#disk.isWindows)
      return { words: 'is a mount of its own; mount its folder instead', mayPass: false }
    if (isWriteRefused(error) || this.#disk.mayBeInUse(error))
      return { words: this.#disk.describeRewriteFailure(error), mayPass: true }
    return undefined
  }

  /**
   * Returns the path. If the folder may not be written, the rewrite that comes next would fail, too, so the
   * error is the same.
   */
  async #saveDamaged(damaged: Buffer): Promise<string> {
    try {
      return await writeBeside(this.#disk, this.#disk.findTarget(), 'torn', clock.now(), [damaged])
    } catch (error) {
      const obstacle = this.#findObstacle(error)
      throw obstacle === undefined ? error : this.#disk.rewriteRefusal(obstacle.words)
    }
  }

  async #repair(
    identity: Identity | undefined,
    { damaged, missingWords, repaired }: Damage,
  ): Promise<Buffer> {
    const hasDamage = damaged.length > 0
    const tornPath = hasDamage ? await this.#saveDamaged(damaged) : ''
    await this.#rewrite(identity, repaired).catch((error: unknown) => {
      // The next start would keep the same bytes again, under another name.
      const isAsBefore = seemsUnedited(this.#disk.statIdentity(), identity)
      if (hasDamage && isAsBefore) this.#disk.remove(tornPath)
      throw error
    })
    const why = 'a crash or the disk had damaged it, or it was copied while pets were created'
    const saved = `${damaged.length} damaged bytes are kept in ${basename(tornPath)}`
    this.#disk.say(
      `repaired: ${hasDamage ? `${why}; ${saved}; ${missingWords}` : 'its closing brackets were missing'}`,
    )
    return repaired
  }
}
