/** One page of pets as a table. What has changed since the last poll is marked. */
import { cloneTemplate, createElement, fill, getElement, isolate, setText } from './dom.ts'
import type { Pet, PetPage } from './pets.ts'

/** How many characters of a name are shown unfolded: about three lines on a narrow screen. */
const maxUnfolded = 100

type Mark = 'new' | 'changed'

interface Changes {
  readonly marks: ReadonlyMap<string, Mark>
  /** Such as `1 new, 2 gone`; empty without changes. */
  readonly summary: string
}

/** The rows by what they say. They are kept where that is the same, so that an unfolded name stays so. */
let shownRows: ReadonlyMap<string, HTMLElement> = new Map()

/**
 * `start` is how many pets are on the pages before, if that is known. `before` is the same page as it was
 * last shown: without a change, the document is left as it is. `status`: the filter; empty for all pets.
 */
export function showPets(
  page: PetPage,
  start: number | undefined,
  status: string,
  before: PetPage | undefined,
): void {
  const { pets, total } = page
  const { marks, summary } = findChanges(pets, before?.pets ?? pets)
  if (before !== undefined && summary === '' && total === before.total) return
  shownRows = new Map(
    pets.map((pet) => {
      const mark = marks.get(pet.id)
      const content = JSON.stringify([pet, mark])
      return [content, shownRows.get(content) ?? createRow(pet, mark)]
    }),
  )
  const rows = pets.length > 0 ? shownRows.values() : [createEmptyRow(status, page.total ?? start)]
  getElement('rows', HTMLElement).replaceChildren(...rows)
  const count = describeCount(page, start)
  setText(getElement('count', HTMLElement), summary === '' ? count : `${count} (${summary})`)
}

/**
 * Describes the pets of a page: as `12 pets` when they are all on it, or it is not known where it begins; or
 * as `11–13 of 13`.
 */
function describeCount({ pets: { length }, total, next }: PetPage, start: number | undefined): string {
  const reached = (start ?? Number.NaN) + length
  // A hand edit may have added to the pages before, or removed from them: the last page is counted from the
  // end.
  const last = next === undefined ? (total ?? reached) : Math.min(reached, total ?? reached)
  if ((start === 0 && next === undefined) || Number.isNaN(last)) {
    return length === 1 ? '1 pet' : `${length} pets`
  }
  const first = last - length + 1
  const range = length > 1 ? `${first}–${last}` : length === 1 ? last : 0
  return `${range} of ${total ?? (next === undefined ? last : `more than ${last}`)}`
}

export function clearPets(): void {
  shownRows = new Map()
  getElement('rows', HTMLElement).replaceChildren()
  setText(getElement('count', HTMLElement), '')
}

function findChanges(pets: readonly Pet[], before: readonly Pet[]): Changes {
  const marks = new Map<string, Mark>()
  const known = new Map(before.map((pet) => [pet.id, JSON.stringify(pet)]))
  for (const pet of pets) {
    const text = known.get(pet.id)
    if (text === undefined) marks.set(pet.id, 'new')
    else if (text !== JSON.stringify(pet)) marks.set(pet.id, 'changed')
    known.delete(pet.id)
  }
  const countMarks = (mark: Mark): number => [...marks.values()].filter((other) => other === mark).length
  const counts: [number, string][] = [
    [countMarks('new'), 'new'],
    [countMarks('changed'), 'changed'],
    [known.size, 'gone'],
  ]
  const changes = counts.filter(([count]) => count > 0)
  return { marks, summary: changes.map(([count, what]) => `${count} ${what}`).join(', ') }
}

function createRow({ id, name, categoryId, status }: Pet, mark: Mark | undefined): HTMLElement {
  const row = fill(cloneTemplate('row-template'), 'tr')
  if (mark !== undefined) row.dataset['mark'] = mark
  fill(row, '.id', id)
  fill(row, '.name', createName(name), mark && ' ', mark && createElement('span', { class: 'mark' }, mark))
  fill(row, '.category', categoryId)
  fill(row, '.state', createElement('span', { class: 'chip', 'data-status': status }, status))
  return row
}

/**
 * Creates the element of a name. A long one is folded, and whole at a click; one of which nothing would be
 * seen is described.
 */
export function createName(name: string): HTMLElement {
  const characters = [...name].length
  if (/^[\s\p{Cc}\p{Default_Ignorable_Code_Point}]*$/u.test(name)) {
    const text = characters === 0 ? 'empty name' : `blank name, length ${characters}`
    return createElement('span', { class: 'empty' }, text)
  }
  if (characters <= maxUnfolded && !name.includes('\n')) return isolate(name)
  return createElement('details', {}, createElement('summary', {}, isolate(name)))
}

/** `others`: how many pets there are on other pages, as far as that is known. */
function createEmptyRow(status: string, others: number | undefined): HTMLElement {
  const row = fill(cloneTemplate('empty-row-template'), 'tr')
  const pets = status === '' ? 'pets' : `pets with the status ${status}`
  fill(row, 'td', others === 0 ? `No ${pets}.` : `No ${pets} on this page.`)
  return row
}
