import { inbox } from './frame/inbox.ts'
import { command } from './operations/command.ts'
import { gate } from './operations/gate.ts'

/** Texts for decisions: the inbox, gates, and the dialog of every command. */
export const tDecide = { inbox, gate, command }
