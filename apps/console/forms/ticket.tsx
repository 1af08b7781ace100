import { tChange } from '../words/change.ts'
import { TextField } from './field.tsx'

/** The number of the ticket that explains this command to others. */
export const TicketField = (props: { value: string; change: (ticket: string) => void }) => (
  <TextField {...props} label={tChange.ticket} maxLength={200} />
)

/** The ticket as a member of a command's body; left out if empty. */
export const ticketOf = (typed: string): { ticket?: string } => (typed.trim() === '' ? {} : { ticket: typed.trim() })
