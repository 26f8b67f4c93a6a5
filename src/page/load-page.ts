/** The page at `/`. The bundle contains its text; when the program runs from source, it is built at the first start. */
import type { Page } from './build-page.ts'

/** The build replaces both names with strings, and so leaves the import of build-page.ts out of the bundle as unreachable. */
declare const PETSTORE_PAGE_HTML: string | undefined
declare const PETSTORE_PAGE_POLICY: string

let page: Promise<Page> | undefined

/** Built once per process, for all its servers. */
export async function loadPage(): Promise<Page> {
  if (typeof PETSTORE_PAGE_HTML === 'undefined') {
    page ??= import('./build-page.ts').then(({ buildPage }) => buildPage())
    return page
  }
  return { html: PETSTORE_PAGE_HTML, policy: PETSTORE_PAGE_POLICY }
}

/** The headers of the page's response, in addition to those of every response. */
export function pageHeaders({ policy }: Page): readonly string[] {
  return ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer']
}
