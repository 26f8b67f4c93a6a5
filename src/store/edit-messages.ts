/** What onMessage is told of the data file while the store runs: each edit; once, why the file cannot be used; and that it can again. */
import { DataFileUnusable } from '../data-file/data-file-errors.ts'
import type { DataFile } from '../data-file/data-file.ts'
import type { PetIndex } from './pet-index.ts'

export class EditMessages {
  readonly #say: (message: string) => void
  /** What was last said to be wrong: the text of a fault in the file, `disk` for a system error, or ''. */
  #saidFailure = ''

  constructor(say: (message: string) => void) {
    this.#say = say
  }

  sayReloaded(before: PetIndex, now: PetIndex): void {
    const { added, removed, changed } = before.changesTo(now)
    const count = now.size === 1 ? '1 pet' : `${now.size} pets`
    this.#say(`reloaded ${count}: ${added} added, ${removed} removed, ${changed} changed`)
  }

  sayFailure(file: DataFile, error: unknown): void {
    if (error instanceof DataFileUnusable) return this.#sayUnusable(file, error)
    const consequence = 'pets are still served, but none can be added'
    this.#sayOnce('disk', `${file.path}: cannot be used: ${file.describeError(error)}; ${consequence}`)
  }

  #sayUnusable({ path }: DataFile, { message, reason }: DataFileUnusable): void {
    // While it is being saved it is too early to say anything: the next look reads the file again.
    if (reason === 'being saved') return
    const served = `is still served${reason === 'lost' ? ', but is in memory only' : ''}`
    const consequence = `the last valid data ${served}, and no pet can be added until this is fixed`
    // Several faults have a line each, and then the consequence has one, too.
    const separator = message.includes('\n') ? `\n${path}: ` : '; '
    this.#sayOnce(message, message + separator + consequence)
  }

  #sayOnce(failure: string, message: string): void {
    if (failure !== this.#saidFailure) this.#say(message)
    this.#saidFailure = failure
  }

  /** Says that pets can be added, if it was said that they cannot. */
  sayWorking({ path }: DataFile, wasInvalid = false): void {
    const what = wasInvalid ? 'is valid again, and pets can be added' : 'can be used again'
    if (this.#saidFailure !== '') this.#say(`${path}: ${what}`)
    this.#saidFailure = ''
  }
}
