/** The page's parts, wired together. */
import { showReference } from './reference-view.ts'
import { Session } from './session.ts'
import { createStoreView } from './store-view.ts'
import { createWireView } from './wire-view.ts'

const session = new Session()
createStoreView(session, createWireView(session))
void showReference(session)
