import { useId } from 'react'
import { tChange } from '../words/change.ts'
import { Field } from './field.tsx'

/** The number of the ticket that explains this command to others. */
export const TicketField = ({ value, change }: { value: string; change: (ticket: string) => void }) => {
  const id = useId()
  return (
    <Field id={id} label={tChange.ticket}>
      <input id={id} className="input" maxLength={200} value={value} onChange={(event) => change(event.target.value)} />
    </Field>
  )
}

/** The ticket as a member of a command's body; left out if empty. */
export const ticketOf = (typed: string): { ticket?: string } => (typed.trim() === '' ? {} : { ticket: typed.trim() })
