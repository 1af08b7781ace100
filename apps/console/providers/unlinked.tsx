import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { UnlinkedUser } from '../../shared/contracts/identity/providers.ts'
import { unlinkedQuery } from '../queries/admin.ts'
import { Card } from '../ui/card.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'

const words = tAdmin.unlinked

/** Who still signs in without a provider, and which accounts there may be theirs too. */
export const Unlinked = () => {
  const list = useInfiniteQuery(unlinkedQuery())
  return (
    <Card title={words.title} note={words.about}>
      <ListTable list={list} empty={words.empty} caption={words.title} columns={COLUMNS} keyOf="id" />
    </Card>
  )
}

const User = ({ id, username }: { id: string; username: string }) => (
  <Link to="/admin/users/$user_id" params={{ user_id: id }}>
    {username}
  </Link>
)

const { columns } = tAdmin.user
const COLUMNS: Column<UnlinkedUser>[] = [
  { name: columns.name, kind: 'lead', className: 'font-medium wrap-anywhere', cell: User },
  {
    name: columns.status,
    cell: ({ emergency, enrolled }) => (emergency ? words.emergency : enrolled ? null : words.invited),
  },
  { name: columns.roles, cell: ({ roles }) => roles.join(', ') || null },
  {
    name: words.twins,
    cell: ({ twins }) =>
      twins.length === 0 ? null : (
        <span className="flex flex-wrap gap-2">
          {twins.map((twin) => (
            <User key={twin.id} {...twin} />
          ))}
        </span>
      ),
  },
  { name: columns.since, cell: ({ created_at }) => <TimeText at={created_at} /> },
]
