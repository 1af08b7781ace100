import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { GrantRow } from '../api/types.ts'
import { grantsQuery, providersQuery, rolesQuery, userQuery } from '../queries/admin.ts'
import { namesQuery } from '../queries/audit.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { SCOPE_FIELDS, scopeOf, scopeWords, typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'

/** Who holds which role where, by grant. Roles are granted on the page of a user or a group. */
export const GrantsPage = () => {
  const list = useInfiniteQuery(grantsQuery())
  const { button, dialog } = useActs()
  const { columns: words } = tAdmin.grant
  const columns: Column<GrantRow>[] = [
    { name: words.subject, kind: 'lead', cell: (row) => <Subject {...row} /> },
    { name: words.role, cell: ({ role }) => role },
    { name: words.where, cell: ({ scope }) => scopeWords(scope) },
    { name: words.until, cell: Until },
    {
      name: tAdmin.remove,
      cell: ({ id, role, scope, subject_id, subject_name }) =>
        button(removalOf(id, role, scope, subject_name ?? subject_id)),
    },
  ]
  return (
    <AdminPage title={tAdmin.grant.title}>
      <ListTable list={list} empty={tAdmin.grant.empty} caption={tAdmin.grant.title} columns={columns} keyOf="id" />
      {dialog}
    </AdminPage>
  )
}

export const Until = ({ expires_at }: { expires_at: string | null }) =>
  expires_at ? <TimeText at={expires_at} /> : tAdmin.never

const Subject = ({ subject_type, subject_id, subject_name }: GrantRow) =>
  subject_type === 'group' ? (
    <Link to="/admin/groups">{subject_id}</Link>
  ) : (
    <Link to="/admin/users/$user_id" params={{ user_id: subject_id }}>
      {subject_name ?? subject_id}
    </Link>
  )

/** One read has the names of 500 people; only those beyond are read one by one. */
const useUserName = (user_id: string): string => {
  const { data, isError } = useQuery(namesQuery())
  const known = data?.names.get(user_id)
  const isUnknown = known === undefined && (isError || data !== undefined)
  return useQuery({ ...userQuery(user_id), enabled: isUnknown }).data?.username ?? known ?? user_id
}

export const UserName = ({ user_id }: { user_id: string }) => (
  <Link to="/admin/users/$user_id" params={{ user_id }}>
    {useUserName(user_id)}
  </Link>
)

/** Who made someone a member: a person, a provider by its title, or the system. */
export const Giver = ({ added_by }: { added_by: string | null }) => {
  const [kind, id = ''] = added_by?.split(':') ?? []
  if (kind === 'provider') return <ProviderTitle id={id} />
  return kind === 'user' ? <UserName user_id={id} /> : (kind ?? null)
}

const ProviderTitle = ({ id }: { id: string }) => useProviderTitle()(id)

/** Names a provider by its title, or by its id if the file no longer has it. */
export const useProviderTitle = () => {
  const { data } = useQuery(providersQuery())
  return (id: string): string => data?.items.find((one) => one.id === id)?.title ?? id
}

export const removalOf = (grant_id: string, role: string, scope: GrantRow['scope'], name: string): Act => ({
  title: tAdmin.grant.remove(role, scopeWords(scope), name),
  button: tAdmin.remove,
  effect: tAdmin.grant.remove_effect,
  danger: true,
  method: 'DELETE',
  path: `/v1/admin/grants/${grant_id}`,
  removes: { grant_id },
})

export const useRoles = () => useQuery(rolesQuery()).data?.items ?? []

/** The roles that people, or machines, can be granted, as a choice. */
export const useRolesOf = (kind: 'people' | 'machines') => useRoles().flatMap((role) => (role[kind] ? [role.role] : []))

export const grantTo = (
  subject: { type: 'user' | 'group'; id: string; name: string },
  roles: readonly string[],
): Act => ({
  title: tAdmin.grant.to(subject.name),
  button: tAdmin.grant.add,
  effect: tAdmin.grant.add_effect,
  path: '/v1/admin/grants',
  fields: [
    { name: 'role', label: tAdmin.grant.role, kind: 'select', choices: roles.map((role) => [role, role] as const) },
    { name: 'until', label: tAdmin.grant.until, kind: 'date', optional: true },
    ...SCOPE_FIELDS,
  ],
  body: (typed) => ({
    subject_type: subject.type,
    subject_id: subject.id,
    role: typedIn(typed, 'role'),
    scope: scopeOf(typed),
    ...(typedIn(typed, 'until') === '' ? {} : { expires_at: `${typedIn(typed, 'until')}T23:59:59.000Z` }),
  }),
})
