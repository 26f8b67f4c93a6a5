/** What onMessage is told of the data file while the store runs: each edit; once, why the file cannot be used; and that it can again. */
import { DataFileChanged, DataFileUnusable } from '../data-file/data-file-errors.ts'
import type { DataFile } from '../data-file/data-file.ts'
import type { PetIndex } from './pet-index.ts'

export class EditMessages {
  readonly #say: (message: string) => void
  /** What was last said to be wrong: the text of it, `disk` for a failed append, or ''. */
  #saidFailure = ''

  constructor(say: (message: string) => void) {
    this.#say = say
  }

  sayReloaded(before: PetIndex, now: PetIndex): void {
    const { added, removed, changed } = before.changesTo(now)
    const count = now.size === 1 ? '1 pet' : `${now.size} pets`
    this.#say(`reloaded ${count}: ${added} added, ${removed} removed, ${changed} changed`)
  }

  /** An append has failed. */
  sayAppendFailed(file: DataFile, error: unknown): void {
    this.#sayOnce('disk', explainFailure(file, error, 'pets are still served, but none can be added'))
  }

  /** A look has found that the file cannot be read or used. `kept` is what became of the pets: if that changes, it is said again. */
  sayUnusable(file: DataFile, error: unknown, kept: string): void {
    // While it is being saved it is too early to say anything: the next look reads the file again.
    if (error instanceof DataFileChanged) return
    const consequence = `no pet can be added until this is fixed; the last valid pets are still served${kept}`
    const message = explainFailure(file, error, consequence)
    this.#sayOnce(message, message)
  }

  #sayOnce(failure: string, message: string): void {
    if (failure !== this.#saidFailure) this.#say(message)
    this.#saidFailure = failure
  }

  /** After a look that found nothing to do: the last one may have failed. */
  sayReadable(file: DataFile): void {
    if (this.#saidFailure !== 'disk') this.sayWorking(file)
  }

  /** Says that the file can be used, if it was said that it cannot. */
  sayWorking(file: DataFile, wasInvalid = false): void {
    if (this.#saidFailure === '') return
    this.#saidFailure = ''
    this.#say(
      `${file.path}: ${wasInvalid ? 'is valid again, and the pets come from it' : 'can be used again'}`,
    )
    const unwritable = wasInvalid ? file.describeUnwritable() : undefined
    if (unwritable !== undefined) this.#say(unwritable)
  }
}

/** Several faults have a line each, and then the consequence has one, too. */
function explainFailure(file: DataFile, error: unknown, consequence: string): string {
  if (!(error instanceof DataFileUnusable))
    return `${file.path}: cannot be used: ${file.describeError(error)}; ${consequence}`
  const { message } = error
  return `${message}${message.includes('\n') ? `\n${file.path}: ` : '; '}${consequence}`
}
