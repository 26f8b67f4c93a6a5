/** The state in which the data file was last read or written here, which is how an edit of somebody else's is noticed. */
import { type Disk, type Identity, isSame, unknownIdentity } from './disk.ts'

export class LastSeen {
  readonly #disk: Disk
  readonly #path: string
  identity: Identity = unknownIdentity

  constructor(disk: Disk, path: string) {
    this.#disk = disk
    this.#path = path
  }

  /** From now on the file counts as edited until it is read. */
  forget(): void {
    this.identity = unknownIdentity
  }

  /** Whether somebody else has written or replaced the file since. True if that is not known. */
  isEdited(): boolean {
    return !isSame(this.#disk.statIdentity(this.#path), this.identity)
  }
}
