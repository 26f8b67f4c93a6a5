/** What onMessage is told of the data file while the store runs: each edit; once, why the file cannot be used; and that it can again. */
import { DataFileChanged, DataFileUnusable } from '../data-file/data-file-errors.ts'
import type { DataFile } from '../data-file/data-file.ts'
import type { PetIndex } from './pet-index.ts'

export class EditMessages {
  readonly #say: (message: string) => void
  /** What was last said to be wrong: the text of it, `append` for a failed append, or ''. */
  #saidFailure = ''

  constructor(say: (message: string) => void) {
    this.#say = say
  }

  sayReloaded(before: PetIndex, now: PetIndex): void {
    const { added, removed, changed } = before.changesTo(now)
    const count = now.size === 1 ? '1 pet' : `${now.size} pets`
    this.#say(`reloaded ${count}: ${added} added, ${removed} removed, ${changed} changed`)
  }

  /**
   * An append has failed, or a look has found that the file cannot be read or used. Then `kept` is what became of the pets: if that changes,
   * it is said again. Of appends that fail, the first is told, however differently they fail.
   */
  sayUnusable(file: DataFile, error: unknown, kept?: string): void {
    // While it is being saved it is too early to say anything: the next look reads the file again.
    if (error instanceof DataFileChanged) return
    const isFault = error instanceof DataFileUnusable
    const fault = isFault ? error.message : `${file.path}: cannot be used: ${file.describeError(error)}`
    // Several faults have a line each, and then the consequence has one, too.
    const separator = fault.includes('\n') ? `\n${file.path}: ` : '; '
    const consequence = 'no pet can be added until this is fixed; the last valid pets are still served'
    const message = `${fault}${separator}${consequence}${kept ?? ''}`
    const failure = kept === undefined ? 'append' : message
    if (failure !== this.#saidFailure) this.#say(message)
    this.#saidFailure = failure
  }

  /** After a look that found nothing to do: the last one may have failed. */
  sayReadable(file: DataFile): void {
    if (this.#saidFailure !== 'append') this.sayWorking(file)
  }

  /** Says that the file can be used, if it was said that it cannot. */
  sayWorking(file: DataFile, wasInvalid = false): void {
    if (this.#saidFailure === '') return
    this.#saidFailure = ''
    const state = wasInvalid ? 'is valid again, and the pets come from it' : 'can be used again'
    this.#say(`${file.path}: ${state}`)
  }
}
