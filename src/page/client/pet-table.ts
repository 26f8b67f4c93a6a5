/** One page of animals as a table, with what has changed since the last look marked. */
import { type Child, find, make, tell } from './dom.ts'
import type { Pet, PetPage } from './pets.ts'

type Mark = 'new' | 'changed'

interface Changes {
  readonly marks: ReadonlyMap<string, Mark>
  /** Empty when there are none. */
  readonly summary: string
}

/** `before` is the same page at the last look; when nothing has changed since, nothing is touched. */
export function showPets(page: PetPage, pageNumber: number, before: PetPage | undefined): void {
  const { pets, total } = page
  const { marks, summary } = findChanges(pets, before?.pets ?? pets)
  if (before !== undefined && summary === '' && total === before.total) return
  find('rows', HTMLElement).replaceChildren(
    ...(pets.length > 0 ? pets.map((pet) => makeRow(pet, marks.get(pet.id))) : [emptyRow()]),
  )
  const all = total === '1' ? '1 animal' : `${total} animals`
  const here = String(pets.length) === total ? all : `Page ${pageNumber}: ${pets.length} of ${all}`
  tell(find('count', HTMLElement), summary === '' ? here : `${here} (${summary})`)
}

export function clearPets(): void {
  find('rows', HTMLElement).replaceChildren()
  tell(find('count', HTMLElement), '')
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
  const said = counts.filter(([count]) => count > 0)
  return { marks, summary: said.map(([count, what]) => `${count} ${what}`).join(', ') }
}

function makeRow({ id, name, categoryId, status }: Pet, mark: Mark | undefined): HTMLElement {
  const title = name === '' ? make('span', { class: 'none' }, 'empty name') : name
  return make(
    'tr',
    mark === undefined ? { role: 'row' } : { role: 'row', 'data-mark': mark },
    makeCell('id', 'Id', id),
    makeCell(
      'name',
      'Name',
      title,
      ...(mark === undefined ? [] : [' ', make('span', { class: 'mark' }, mark)]),
    ),
    makeCell('category', 'Category', categoryId),
    makeCell('state', 'Status', make('span', { class: 'chip', 'data-status': status }, status)),
  )
}

function makeCell(type: string, label: string, ...children: readonly Child[]): HTMLElement {
  return make('td', { role: 'cell', class: type, 'data-label': label }, ...children)
}

function emptyRow(): HTMLElement {
  return make(
    'tr',
    { role: 'row' },
    make('td', { role: 'cell', class: 'none', colspan: '4' }, 'No animals here.'),
  )
}
