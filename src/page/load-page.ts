/**
 * The page at `/`: built when this module is loaded from source. The built files have it instead of this
 * module's code (src/build.ts).
 */
import { buildPage } from './build-page.ts'

export const builtPage = await buildPage()
