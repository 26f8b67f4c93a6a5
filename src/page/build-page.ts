/**
 * The page at `/`: bundles the files of `client/` into one HTML text that loads nothing else, when this module
 * is loaded from source. It needs esbuild, so the built files have the page instead of this module's code
 * (src/build.ts).
 */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

interface Page {
  readonly html: string
  /** Headers of its response, in addition to those of every response; names and values in turn. */
  readonly headers: readonly string[]
}

export const builtPage = await buildPage()

/** Inlines the style sheet and the script. The policy allows these two, by their hashes, and no others. */
async function buildPage(): Promise<Page> {
  const html = await readFile(new URL('client/index.html', import.meta.url), 'utf8')
  const [style, script] = await Promise.all([bundle('page.css'), bundle('page.ts')])
  const policy = [
    "default-src 'none'",
    `script-src '${sourceHash(script)}'`,
    `style-src '${sourceHash(style)}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // The browser refuses innerHTML and the like, so that no text of the data can become markup or script
    // (https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Content-Security-Policy/require-trusted-types-for).
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  return {
    // Functions give the replacements: in a string, patterns such as "$&" would be replaced too.
    html: html
      .replace('<link rel="stylesheet" href="page.css" />', () => `<style>${style}</style>`)
      .replace(
        '<script type="module" src="page.ts"></script>',
        () => `<script type="module">${script}</script>`,
      ),
    headers: ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer'],
  }
}

async function bundle(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`client/${name}`, import.meta.url))],
    bundle: true,
    format: 'esm',
    target: ['chrome110', 'firefox115', 'safari16.4'],
    minify: true,
    write: false,
    charset: 'utf8',
    legalComments: 'none',
  })
  return outputFiles[0]?.text ?? ''
}

/** Returns the hash of an inline element's text (CSP Level 3, section 2.3.1). */
function sourceHash(text: string): string {
  return `sha256-${hash('sha256', text, 'base64')}`
}
