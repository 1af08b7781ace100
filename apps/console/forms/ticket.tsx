import { useId } from 'react'
import { tChange } from '../words/change.ts'

/** The number under which others find why this was done. */
export const TicketField = ({ value, change }: { value: string; change: (ticket: string) => void }) => {
  const id = useId()
  return (
    <div>
      <label className="label" htmlFor={id}>
        {tChange.ticket}
      </label>
      <input id={id} className="input" maxLength={200} value={value} onChange={(event) => change(event.target.value)} />
    </div>
  )
}

/** As a member of a command's body: left out when nothing is typed. */
export const ticketOf = (typed: string): { ticket?: string } => (typed.trim() === '' ? {} : { ticket: typed.trim() })
