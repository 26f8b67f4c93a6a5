/** The page at `/`: the text that the build put into the bundle or, when run from source, one built at the first start. */
import type { Page } from './build-page.ts'

/** Filled in by the build, both or neither: as plain strings, so that it sees that what makes the page is not needed. */
declare const PETSTORE_PAGE_HTML: string | undefined
declare const PETSTORE_PAGE_POLICY: string

let page: Promise<Page> | undefined

/** Put together once a process: it is the same for every server in it. */
export function loadPage(): Promise<Page> {
  page ??= findPage()
  return page
}

async function findPage(): Promise<Page> {
  if (typeof PETSTORE_PAGE_HTML === 'undefined') {
    const { buildPage } = await import('./build-page.ts')
    return buildPage()
  }
  return { html: PETSTORE_PAGE_HTML, policy: PETSTORE_PAGE_POLICY }
}

/** The headers of the page, besides those of every response. */
export function pageHeaders({ policy }: Page): readonly string[] {
  return ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer']
}
