/** The page at `/`. The bundle contains its text; when the program runs from source, it is built at the first start. */
import type { Page } from './build-page.ts'

/** The build replaces both names with strings, and so leaves the import of build-page.ts out of the bundle as unreachable. */
declare const PETSTORE_PAGE_HTML: string | undefined
declare const PETSTORE_PAGE_POLICY: string

let page: Promise<Page> | undefined

/** Loaded once per process, for all its servers. */
export function loadPage(): Promise<Page> {
  page ??= readOrBuildPage()
  return page
}

async function readOrBuildPage(): Promise<Page> {
  if (typeof PETSTORE_PAGE_HTML === 'undefined') {
    const { buildPage } = await import('./build-page.ts')
    return buildPage()
  }
  return { html: PETSTORE_PAGE_HTML, policy: PETSTORE_PAGE_POLICY }
}

/** The headers of the page's response, in addition to those of every response. */
export function pageHeaders({ policy }: Page): readonly string[] {
  return ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer']
}
