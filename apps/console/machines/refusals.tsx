import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { RefusalView } from '../../shared/contracts/session/refusals.ts'
import type { MachineRow } from '../api/types.ts'
import { refusalsQuery } from '../queries/admin.ts'
import { ownRefusalsQuery } from '../queries/me.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'

const words = tAdmin.machine.refused

/** Why the machine got no token, read once the person opens it. */
export const Refusals = ({ machine, own = false }: { machine: MachineRow; own?: boolean }) => {
  const [open, setOpen] = useState(false)
  return (
    <details className="p-4 text-table" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{words.title}</summary>
      {open ? <List machine={machine} own={own} /> : null}
    </details>
  )
}

const List = ({ machine, own }: { machine: MachineRow; own: boolean }) => {
  const { id, username, credentials } = machine
  const list = useInfiniteQuery(own ? ownRefusalsQuery(id) : refusalsQuery(id))
  const named = new Map(credentials.map((one) => [one.id, one.name]))
  const columns: Column<RefusalView>[] = [
    { name: words.at, kind: 'lead', cell: ({ at }) => <TimeText at={at} /> },
    { name: words.cause, cell: ({ cause, claim }) => [words.causes[cause], claim].filter(Boolean).join(' · ') },
    { name: words.credential, cell: ({ credential_id }) => named.get(credential_id ?? '') ?? credential_id },
    { name: words.address, className: 'mono', cell: ({ address }) => address },
  ]
  const keyOf = ({ at, cause, credential_id }: RefusalView) => `${at} ${cause} ${credential_id}`
  return <ListTable list={list} empty={words.empty} caption={words.of(username)} columns={columns} keyOf={keyOf} />
}
