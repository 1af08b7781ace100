import { useQuery } from '@tanstack/react-query'
import { shown } from '../kit/format.ts'
import { meQuery } from '../queries/me.ts'

/** A ticket: a link if it has the form of the installation's ticket system, otherwise text. */
export const Ticket = ({ ticket }: { ticket: string }) => {
  const system = useQuery(meQuery()).data?.tickets
  const text = <bdi>{shown(ticket)}</bdi>
  if (!system || !new RegExp(`^(?:${system.pattern})$`, 'u').test(ticket)) return text
  return (
    <a
      href={system.url.replace('{ticket}', () => encodeURIComponent(ticket))}
      target="_blank"
      rel="noopener noreferrer"
    >
      {text} <span aria-hidden="true">↗</span>
    </a>
  )
}
