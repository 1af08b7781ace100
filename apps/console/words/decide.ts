import { inbox } from './frame/inbox.ts'
import { gate } from './operations/gate.ts'

/** Texts for decisions: the inbox and gates. */
export const tDecide = { inbox, gate }
