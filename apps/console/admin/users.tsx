import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { lookOf } from '../../shared/contracts/client/status.ts'
import type { UserRow } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { usersQuery } from '../queries/admin.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'
import { useRolesOf } from './grants.tsx'

/** All accounts, searchable by name. */
export const UsersPage = () => {
  const { q } = useSearch({ from: '/shell/admin/users' })
  const navigate = useNavigate()
  const list = useInfiniteQuery(usersQuery(q))
  const { button, dialog } = useActs()
  const roles = useRolesOf('people')
  return (
    <AdminPage title={tAdmin.user.title} actions={button(newUser(roles))}>
      <SearchField
        label={tAdmin.user.search}
        value={q}
        search={(text, replace) => void navigate({ to: '/admin/users', search: { q: text }, replace })}
      />
      <ListTable list={list} empty={tAdmin.user.empty} caption={tAdmin.user.title} columns={COLUMNS} keyOf="id" />
      {dialog}
    </AdminPage>
  )
}

const LOOKS = { ACTIVE: 'succeeded', DISABLED: 'paused', DELETED: 'ended' } as const
export const UserStatus = ({ status }: { status: UserRow['status'] }) => (
  <Status state={status.toLowerCase()} look={lookOf(LOOKS[status])} />
)

const newUser = (roles: readonly string[]): Act => ({
  title: tAdmin.user.create,
  button: tAdmin.user.create,
  effect: tAdmin.user.create_effect,
  path: '/v1/admin/users',
  shown: tAdmin.user.link_shown,
  fields: [
    { name: 'username', label: tAdmin.user.username, kind: 'text' },
    {
      name: 'role',
      label: tAdmin.user.first_role,
      kind: 'select',
      choices: roles.map((role) => [role, role] as const),
    },
  ],
  body: (typed) => ({ username: typedIn(typed, 'username'), grants: [{ role: typedIn(typed, 'role'), scope: {} }] }),
})

const { columns: words } = tAdmin.user
const COLUMNS: Column<UserRow>[] = [
  {
    name: words.name,
    kind: 'lead',
    className: 'font-medium wrap-anywhere',
    cell: ({ id, username }) => (
      <Link to="/admin/users/$user_id" params={{ user_id: id }} data-row="">
        {username}
      </Link>
    ),
  },
  { name: words.status, cell: UserStatus },
  { name: words.roles, cell: ({ roles }) => roles.join(', ') || null },
  { name: words.groups, cell: ({ groups }) => groups.join(', ') || null },
  { name: words.since, cell: ({ created_at }) => <TimeText at={created_at} /> },
]
