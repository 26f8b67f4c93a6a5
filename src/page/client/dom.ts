/** Reads and creates elements. Text is always inserted as text, never as markup. */

/** Returns the element with this id. Throws as getDescendant does. */
export function getElement<T extends Element>(id: string, type: new () => T): T {
  return getDescendant(document, `#${id}`, type)
}

/** What an element is filled with: a string becomes text, what is missing is left out. */
export type Child = Node | string | false | undefined

export function createElement<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  return append(element, children)
}

/** Returns a copy of what the template with this id holds, to be filled before it is inserted. */
export function cloneTemplate(id: string): DocumentFragment {
  return document.importNode(getElement(id, HTMLTemplateElement).content, true)
}

/**
 * Returns the first element that the selector finds. Throws if there is none: markup and script are built
 * together, so that is a bug.
 */
export function getDescendant<T extends Element>(parent: ParentNode, selector: string, type: new () => T): T {
  const element = parent.querySelector(selector)
  if (!(element instanceof type)) throw new TypeError(`${selector} is not a ${type.name}`)
  return element
}

/** Appends the children to the first element that the selector finds, and returns it. */
export function fill(parent: ParentNode, selector: string, ...children: readonly Child[]): HTMLElement {
  return append(getDescendant(parent, selector, HTMLElement), children)
}

function append<T extends Element>(element: T, children: readonly Child[]): T {
  element.append(...children.filter((child) => child !== undefined && child !== false))
  return element
}

/**
 * Sets the text only if it differs: a screen reader would read out a live region again, also when it says the
 * same. What the text quotes is isolated (see isolate).
 */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent === text) return
  const parts = text.split(/("(?:\\.|[^"\\])*(?:"|$))/s)
  element.replaceChildren(...parts.map((part, i) => (i % 2 === 0 ? part : isolate(part))))
}

/**
 * Creates an element for what people wrote. A U+202E or Arabic letters in it would otherwise turn around what
 * follows: a badge, or the rest of the JSON.
 */
export function isolate(...written: readonly Child[]): HTMLElement {
  return createElement('bdi', {}, ...written)
}

/**
 * Marks a button that does nothing now. `disabled` would take the keyboard focus off it, such as off Next on
 * the last page.
 */
export function setDisabled(button: HTMLElement, isDisabled: boolean): void {
  button.setAttribute('aria-disabled', String(isDisabled))
}

export function isEnabled(button: HTMLElement): boolean {
  return button.getAttribute('aria-disabled') !== 'true'
}

/** Returns a paragraph of the document with an element for each code span: no other Markdown is in there. */
export function createCodeSpans(text = ''): readonly Child[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? createElement('code', {}, part) : part))
}

/** What is said while the user waits for a response. */
export const waiting = 'Waiting for the service …'

/** Shows an input as wrong, to screen readers too. */
export function markInvalid(input: HTMLElement, isInvalid: boolean): void {
  if (isInvalid) input.setAttribute('aria-invalid', 'true')
  else input.removeAttribute('aria-invalid')
}

/**
 * Creates nodes of code between which a narrow screen may break a line: after commas. Closing quotes,
 * brackets and commas stay with the characters before them, so that no line begins with one. The text itself
 * is unchanged, also when it is copied.
 */
export function createBreakableText(text: string): readonly Node[] {
  const parts = text.split(/(\S{0,4}["'\]}]*,|\S{1,4}["'\]}]+)/)
  return parts.flatMap((part, i): readonly Node[] => {
    if (i % 2 === 0) return [new Text(part)]
    const unbroken = createElement('span', { class: 'unbroken' }, part)
    return part.endsWith(',') ? [unbroken, createElement('wbr', {})] : [unbroken]
  })
}

/**
 * Creates an element for each line of a text, so that what a narrow panel breaks is indented. The text itself
 * is unchanged.
 */
export function createLines(text: string, format: (line: string) => readonly Node[]): readonly Node[] {
  const lines = text.split(/(?<=\n)/)
  return lines.map((line) => createElement('span', { class: 'line' }, ...format(line)))
}

/** Creates the nodes of createBreakableText for JSON, in which each string is isolated. */
export function createJsonText(json: string): readonly Node[] {
  const parts = json.split(/("(?:\\.|[^"\\])*"[\]}:,]*)/s)
  return parts.flatMap((part, i) => (i % 2 === 0 ? createBreakableText(part) : createJsonString(part)))
}

/**
 * Creates the nodes of a string. It may be broken, but not near its end: the closing quote and what follows
 * it stay with characters before them.
 */
function createJsonString(token: string): readonly Node[] {
  const parts = /^"(.*?)((?:[^,"\]}].{0,3}[,"\]}]*)?)("[\]}:,]*)$/su.exec(token) ?? []
  const [, text = '', end = '', closing = ''] = parts
  const breakable = createElement('span', { class: 'breakable' }, ...createBreakableText(text))
  const unbroken = createElement('span', { class: 'unbroken' }, '"', isolate(breakable, end), closing)
  return token.endsWith(',') ? [unbroken, createElement('wbr', {})] : [unbroken]
}
