/** The few ways that this page touches the document. Text goes in as text, never as markup. */

/** The element with this id; the page and its script are one file, so a missing one is a mistake in it. */
export function find<T extends Element>(id: string, type: new () => T): T {
  const element = document.getElementById(id)
  if (!(element instanceof type)) throw new TypeError(`#${id} is not a ${type.name}`)
  return element
}

/** A string becomes text; undefined stands for what is not there. */
export type Child = Node | string | undefined

/** Makes an element. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children.filter((child) => child !== undefined))
  return element
}

/** Sets a text that may be empty; only when it differs, since a live region would say the same again. */
export function tell(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text
}
