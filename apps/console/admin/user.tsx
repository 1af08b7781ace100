import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { ExternalIdentityList } from '../../shared/contracts/session/sso.ts'
import { deviceWords } from '../account/device-words.ts'
import type { SessionRow, UserGrant, UserRow } from '../api/types.ts'
import { groupsQuery, userIdentitiesQuery, userQuery, userSessionsQuery } from '../queries/admin.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { scopeWords, typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'
import { Giver, grantTo, removalOf, Until, useProviderTitle, useRolesOf } from './grants.tsx'
import { joining, leaving } from './groups.tsx'
import { UserStatus } from './users.tsx'

/** One account: its state, its rights and their sources, who vouches for it, and where it is signed in. */
export const UserPage = () => {
  const { user_id } = useParams({ from: '/shell/admin/users/$user_id' })
  const query = useQuery(userQuery(user_id))
  if (query.data) return <Account user={query.data} />
  return (
    <AdminPage title={tAdmin.user.title}>
      <Unread query={query} noun="user" />
    </AdminPage>
  )
}

const Account = ({ user }: { user: UserRow }) => {
  const acts = useActs()
  const standing = actsOf(user)
  return (
    <AdminPage
      title={user.username}
      actions={
        <>
          {standing.map((act) => acts.button(act))}
          {user.status === 'ACTIVE' && user.kind === 'person' ? acts.button(unlockOf(user), 'session:admin') : null}
        </>
      }
    >
      <p className="flex flex-wrap items-center gap-2 text-muted">
        <UserStatus status={user.status} /> · {user.kind === 'machine' ? `${tAdmin.user.machine} · ` : null}
        {tAdmin.user.columns.since} <TimeText at={user.created_at} />
      </p>
      <Grants user={user} {...acts} />
      {user.kind === 'person' ? <Groups user={user} {...acts} /> : null}
      {user.kind === 'person' ? <Identities user={user} {...acts} /> : null}
      {user.kind === 'person' && acts.may('session:admin') ? <Sessions user={user} {...acts} /> : null}
      {acts.dialog}
    </AdminPage>
  )
}

type Part = { user: UserRow; button: ReturnType<typeof useActs>['button'] }

const Grants = ({ user, button }: Part) => {
  const roles = useRolesOf(user.kind === 'machine' ? 'machines' : 'people')
  const { columns: words } = tAdmin.grant
  const columns: Column<UserGrant>[] = [
    { name: words.role, kind: 'lead', cell: ({ role }) => role },
    { name: words.where, cell: ({ scope }) => scopeWords(scope) },
    { name: words.until, cell: Until },
    { name: words.from, cell: ({ via_group_key }) => via_group_key ?? tAdmin.grant.direct },
    {
      name: tAdmin.remove,
      cell: ({ id, role, scope, via_group_key }) =>
        via_group_key ? null : button(removalOf(id, role, scope, user.username)),
    },
  ]
  const grant = grantTo({ type: 'user', id: user.id, name: user.username }, roles)
  return (
    <Card title={tAdmin.grant.title} aside={user.status === 'DELETED' ? null : button(grant)}>
      <Table caption={tAdmin.grant.title} empty={tAdmin.grant.empty} columns={columns} rows={user.grants} />
    </Card>
  )
}

const Groups = ({ user, button }: Part) => {
  const list = useInfiniteQuery(groupsQuery())
  useAllPages(list)
  const groups = rowsOf(list)
  const others = groups.filter(({ group_key }) => !user.groups.includes(group_key))
  const join: Act = {
    ...joining,
    title: tAdmin.group.join,
    button: tAdmin.group.join,
    path: (typed) => `/v1/admin/groups/${typedIn(typed, 'group')}/members/${user.id}`,
    fields: [
      {
        name: 'group',
        label: tAdmin.group.group,
        kind: 'select',
        choices: others.map(({ group_key, name }) => [group_key, name]),
      },
    ],
  }
  const columns: Column<{ id: string; added_by: string | null }>[] = [
    { name: tAdmin.group.group, kind: 'lead', cell: ({ id }) => id },
    { name: tAdmin.group.added_by, cell: Giver },
    { name: tAdmin.remove, cell: ({ id }) => button(leaving(user, id)) },
  ]
  const rows = user.groups.map((id) => {
    const members = groups.find(({ group_key }) => group_key === id)?.members
    return { id, added_by: members?.find((member) => member.id === user.id)?.added_by ?? null }
  })
  return (
    <Card title={tAdmin.group.title} aside={others.length > 0 && user.status === 'ACTIVE' ? button(join) : null}>
      <Table caption={tAdmin.group.title} empty={tAdmin.group.empty} columns={columns} rows={rows} />
    </Card>
  )
}

const Identities = ({ user, button }: Part) => {
  const query = useQuery(userIdentitiesQuery(user.id))
  const titleOf = useProviderTitle()
  const words = tAdmin.identity
  const unlinkOf = (provider: string): Act => ({
    title: words.unlink_one(titleOf(provider)),
    button: words.unlink,
    effect: words.unlink_effect,
    danger: true,
    method: 'DELETE',
    path: `/v1/admin/users/${user.id}/identities/${provider}`,
  })
  const columns: Column<ExternalIdentityList['items'][number] & { id: string }>[] = [
    { name: words.provider, kind: 'lead', cell: ({ provider }) => titleOf(provider) },
    { name: words.subject, className: 'mono wrap-anywhere', cell: ({ subject }) => subject },
    { name: words.linked, cell: ({ linked_at }) => <TimeText at={linked_at} /> },
    { name: words.unlink, cell: ({ provider }) => button(unlinkOf(provider)) },
  ]
  if (!query.data) return <Unread query={query} />
  const rows = query.data.items.map((one) => ({ ...one, id: one.provider }))
  return (
    <Card title={words.title}>
      <Table caption={words.title} empty={words.empty} columns={columns} rows={rows} />
    </Card>
  )
}

const Sessions = ({ user, button }: Part) => {
  const query = useQuery(userSessionsQuery(user.id))
  const path = `/v1/admin/users/${user.id}/sessions`
  const endOf = (row: SessionRow): Act => ({
    title: tAdmin.session.end_one(deviceOf(row)),
    button: tAdmin.session.end,
    effect: tAdmin.session.end_effect,
    method: 'DELETE',
    path: `${path}/${row.id}`,
  })
  const endAll: Act = {
    title: tAdmin.session.end_all,
    button: tAdmin.session.end_all,
    effect: tAdmin.session.end_all_effect,
    danger: true,
    method: 'DELETE',
    path,
  }
  const columns: Column<SessionRow>[] = [
    { name: tAccount.sessions.device, kind: 'lead', cell: deviceOf },
    { name: tAccount.sessions.address, className: 'mono', cell: ({ ip_address }) => ip_address },
    { name: tAccount.sessions.last_used, cell: ({ last_used_at }) => <TimeText at={last_used_at} /> },
    { name: tAdmin.session.end, cell: (row) => button(endOf(row), 'session:admin') },
  ]
  if (!query.data) return <Unread query={query} />
  const rows = query.data.items
  return (
    <Card title={tAdmin.session.title} aside={rows.length > 0 ? button(endAll, 'session:admin') : null}>
      <Table caption={tAdmin.session.title} empty={tAdmin.session.empty} columns={columns} rows={rows} />
    </Card>
  )
}

const deviceOf = ({ user_agent }: SessionRow): string =>
  deviceWords(user_agent, tAccount.sessions.on) ?? tAccount.sessions.unknown

/** A table inside a card; without rows, its text for that case. */
export const Table = <Row extends { id: string }>({
  empty,
  ...table
}: {
  empty: string
  caption: string
  columns: Column<Row>[]
  rows: Row[]
}) => (table.rows.length === 0 ? <p className="p-4 text-muted">{empty}</p> : <DataTable {...table} keyOf="id" />)

const actsOf = ({ id, status, kind }: UserRow): Act[] => {
  const words = tAdmin.user
  const path = `/v1/admin/users/${id}`
  const move = { reason: true, accepted: words.sessions_pending }
  const link = { shown: words.link_shown }
  const removes = { user_id: id }
  const disable = { ...move, ...act('disable'), path: `${path}/disable`, danger: true, removes }
  const enable = { ...act('enable'), path: `${path}/enable`, reason: true }
  const remove = { ...move, ...act('delete'), path: `${path}/delete`, danger: true, removes }
  const renew = { ...link, ...act('link'), path: `${path}/enrolment-token` }
  const recover = { ...link, ...act('recover'), path: `${path}/recovery`, danger: true }
  if (status === 'DELETED') return []
  if (status === 'DISABLED') return [enable, remove]
  return kind === 'machine' ? [disable, remove] : [renew, recover, disable, remove]
}

const act = (verb: 'disable' | 'enable' | 'delete' | 'link' | 'recover' | 'unlock') => ({
  title: tAdmin.user[verb],
  button: tAdmin.user[verb],
  effect: tAdmin.user[`${verb}_effect`],
})
const unlockOf = ({ id }: UserRow): Act => ({ ...act('unlock'), path: `/v1/admin/users/${id}/unlock` })
