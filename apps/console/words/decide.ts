import { command } from './en/command.ts'
import { gate } from './en/gate.ts'
import { inbox } from './en/inbox.ts'

/** Words of decisions: the inbox, gates, and the dialog of every command. */
export const tDecide = { inbox, gate, command }
