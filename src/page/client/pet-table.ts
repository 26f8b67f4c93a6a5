/** One page of animals as a table. What has changed since the last poll is marked. */
import { type Child, getElement, createElement, setText } from './dom.ts'
import type { Pet, PetPage } from './pets.ts'

type Mark = 'new' | 'changed'

interface Changes {
  readonly marks: ReadonlyMap<string, Mark>
  /** Such as `1 new, 2 gone`; empty without changes. */
  readonly summary: string
}

/** `before` is the same page as it was last shown. Without a change, the document is left as it is. */
export function showPets(page: PetPage, pageNumber: number, before: PetPage | undefined): void {
  const { pets, total } = page
  const { marks, summary } = findChanges(pets, before?.pets ?? pets)
  if (before !== undefined && summary === '' && total === before.total) return
  getElement('rows', HTMLElement).replaceChildren(
    ...(pets.length > 0 ? pets.map((pet) => createRow(pet, marks.get(pet.id))) : [createEmptyRow()]),
  )
  const all = total === '1' ? '1 animal' : `${total} animals`
  const count = String(pets.length) === total ? all : `Page ${pageNumber}: ${pets.length} of ${all}`
  setText(getElement('count', HTMLElement), summary === '' ? count : `${count} (${summary})`)
}

export function clearPets(): void {
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
  const title = name === '' ? createElement('span', { class: 'empty' }, 'empty name') : name
  return createElement(
    'tr',
    mark === undefined ? { role: 'row' } : { role: 'row', 'data-mark': mark },
    createCell('id', 'Id', id),
    createCell(
      'name',
      'Name',
      title,
      ...(mark === undefined ? [] : [' ', createElement('span', { class: 'mark' }, mark)]),
    ),
    createCell('category', 'Category', categoryId),
    createCell('state', 'Status', createElement('span', { class: 'chip', 'data-status': status }, status)),
  )
}

function createCell(type: string, label: string, ...children: readonly Child[]): HTMLElement {
  return createElement('td', { role: 'cell', class: type, 'data-label': label }, ...children)
}

function createEmptyRow(): HTMLElement {
  return createElement(
    'tr',
    { role: 'row' },
    createElement('td', { role: 'cell', class: 'empty', colspan: '4' }, 'No animals.'),
  )
}
