import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { GroupRow } from '../api/types.ts'
import { groupsQuery } from '../queries/admin.ts'
import { rowsOf } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'
import { Giver, grantTo, useRoles } from './grants.tsx'
import { UserStatus } from './users.tsx'

/** Groups with their members. */
export const GroupsPage = () => {
  const list = useInfiniteQuery(groupsQuery())
  const { button, dialog } = useActs()
  const groups = rowsOf(list)
  return (
    <AdminPage title={tAdmin.group.title} actions={button(CREATE)}>
      <Listing list={list} empty={groups.length === 0 ? tAdmin.group.empty : undefined} cards>
        {groups.map((group) => (
          <Group key={group.group_key} group={group} button={button} />
        ))}
      </Listing>
      {dialog}
    </AdminPage>
  )
}

type Member = GroupRow['members'][number]

const Group = ({ group, button }: { group: GroupRow; button: ReturnType<typeof useActs>['button'] }) => {
  const { group_key, name, members } = group
  const roles = useRoles().map(({ role }) => role)
  const add: Act = {
    ...joining,
    title: `${tAdmin.group.add}: ${name}`,
    button: tAdmin.group.add,
    path: (typed) => `/v1/admin/groups/${group_key}/members/${typedIn(typed, 'person')}`,
    fields: [{ name: 'person', label: tAdmin.group.member, kind: 'person', except: members.map(({ id }) => id) }],
  }
  const columns: Column<Member>[] = [
    {
      name: tAdmin.group.member,
      kind: 'lead',
      cell: ({ id, username }) => (
        <Link to="/admin/users/$user_id" params={{ user_id: id }}>
          {username}
        </Link>
      ),
    },
    { name: tAdmin.user.columns.status, cell: UserStatus },
    { name: tAdmin.group.added_by, cell: Giver },
    { name: tAdmin.remove, cell: (member) => button(leaving(member, group_key)) },
  ]
  return (
    <Card
      title={name}
      note={group_key}
      aside={
        <span className="ml-auto flex flex-wrap gap-2">
          {button(grantTo({ type: 'group', id: group_key, name }, roles))}
          {button(add)}
          {button(renaming(group))}
          {button(deleting(group))}
        </span>
      }
    >
      {group.description ? <p className="px-4 py-2 text-muted">{group.description}</p> : null}
      {members.length === 0 ? (
        <p className="p-4 text-muted">{tAdmin.group.no_members}</p>
      ) : (
        <DataTable caption={tAdmin.group.members(name)} columns={columns} rows={members} keyOf="id" />
      )}
    </Card>
  )
}

/** Makes a user a member; the page adds the user and the path. */
export const joining = { effect: tAdmin.group.join_effect, method: 'PUT' as const }

export const leaving = ({ id, username }: { id: string; username: string }, group_key: string): Act => ({
  title: tAdmin.group.leave(username, group_key),
  button: tAdmin.remove,
  effect: tAdmin.group.leave_effect,
  danger: true,
  method: 'DELETE',
  path: `/v1/admin/groups/${group_key}/members/${id}`,
  removes: { user_id: id, group: group_key },
})

const renaming = ({ group_key, name, version }: GroupRow): Act => ({
  title: tAdmin.group.rename_one(name),
  button: tAdmin.group.rename,
  effect: tAdmin.group.rename_effect,
  method: 'PATCH',
  path: `/v1/admin/groups/${group_key}`,
  version,
  fields: [{ name: 'name', label: tAdmin.group.name, kind: 'text', value: name }],
  body: (typed) => ({ name: typedIn(typed, 'name') }),
})

const deleting = ({ group_key, name, version }: GroupRow): Act => ({
  title: tAdmin.group.delete_one(name),
  button: tAdmin.group.delete,
  effect: tAdmin.group.delete_effect,
  danger: true,
  method: 'DELETE',
  path: `/v1/admin/groups/${group_key}`,
  version,
  removes: { group: group_key },
})

const CREATE: Act = {
  title: tAdmin.group.create,
  button: tAdmin.group.create,
  effect: tAdmin.group.create_effect,
  path: '/v1/admin/groups',
  fields: [
    { name: 'key', label: tAdmin.group.key, kind: 'text' },
    { name: 'name', label: tAdmin.group.name, kind: 'text' },
  ],
  body: (typed) => ({ group_key: typedIn(typed, 'key'), name: typedIn(typed, 'name') }),
}
