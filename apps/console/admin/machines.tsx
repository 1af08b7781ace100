import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { MachineRow } from '../api/types.ts'
import { machinesQuery } from '../queries/admin.ts'
import { rowsOf } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { type Column, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { SCOPE_FIELDS, scopeOf, scopeWords, typedIn } from './fields.tsx'
import { AdminPage } from './frame.tsx'
import { useRoles } from './grants.tsx'
import { Table } from './user.tsx'

const words = tAdmin.machine

/** Service accounts with their owners and credentials. Their roles are on the page of the account. */
export const MachinesPage = () => {
  const list = useInfiniteQuery(machinesQuery())
  const { button, dialog } = useActs()
  const machines = rowsOf(list)
  const create: Act = {
    title: words.create,
    button: words.create,
    effect: words.create_effect,
    path: '/v1/admin/machines',
    fields: [{ name: 'name', label: words.name, kind: 'text' }, OWNER],
    body: (typed) => ({ name: typedIn(typed, 'name'), owners: [typedIn(typed, 'person')] }),
  }
  return (
    <AdminPage title={words.title} actions={button(create)}>
      <Listing list={list} empty={machines.length === 0 ? words.empty : undefined} cards>
        {machines.map((machine) => (
          <Machine key={machine.id} machine={machine} button={button} />
        ))}
      </Listing>
      {dialog}
    </AdminPage>
  )
}

type Credential = MachineRow['credentials'][number]
type Button = ReturnType<typeof useActs>['button']

const Machine = ({ machine, button }: { machine: MachineRow; button: Button }) => {
  const permissions = usePermissions()
  const path = `/v1/admin/machines/${machine.id}`
  const addOwner: Act = {
    title: `${words.add_owner}: ${machine.username}`,
    button: words.add_owner,
    effect: words.owner_effect,
    method: 'PUT',
    path: (typed) => `${path}/owners/${typedIn(typed, 'person')}`,
    fields: [OWNER],
  }
  const columns: Column<Credential>[] = [
    { name: words.columns.name, kind: 'lead', cell: ({ name, kind }) => `${name} (${kind})` },
    {
      name: words.columns.permits,
      cell: ({ permissions: held, scope, networks }) => [held.join(', '), scopeWords(scope), ...networks].join(' · '),
    },
    {
      name: words.columns.expires,
      cell: ({ revoked_at, expires_at }) => (revoked_at ? words.revoked : <TimeText at={expires_at} />),
    },
    {
      name: words.columns.used,
      cell: ({ last_used_at }) => (last_used_at ? <TimeText at={last_used_at} /> : tAdmin.never),
    },
    {
      name: words.revoke,
      cell: (one) =>
        one.revoked_at ? null : (
          <span className="flex flex-wrap gap-2">
            {one.kind === 'key' ? button(rotationOf(path, one)) : null}
            {button(revocationOf(path, one))}
          </span>
        ),
    },
  ]
  return (
    <Card
      title={
        <Link to="/admin/users/$user_id" params={{ user_id: machine.id }}>
          {machine.username}
        </Link>
      }
      note={`${words.owners}: ${machine.owners.map(({ username }) => username).join(', ')} · ${words.roles}: ${machine.roles.join(', ') || words.no_roles}`}
      aside={
        <span className="ml-auto flex flex-wrap gap-2">
          {button(addOwner)}
          {button(newKey(machine, path, permissions))}
        </span>
      }
    >
      <Table
        caption={words.keys(machine.username)}
        empty={words.no_keys}
        columns={columns}
        rows={machine.credentials}
      />
    </Card>
  )
}

/** The permissions of the roles that a machine may hold; a key allows some of them. */
const usePermissions = (): string[] => [
  ...new Set(useRoles().flatMap(({ machines, permissions }) => (machines ? permissions : []))),
]

const OWNER = { name: 'person', label: words.owner, kind: 'person' } as const
const DAYS = { name: 'days', label: words.days, kind: 'number', value: '90' } as const

const newKey = ({ username }: MachineRow, path: string, permissions: string[]): Act => ({
  title: `${words.new_key}: ${username}`,
  button: words.new_key,
  effect: words.key_effect,
  path: `${path}/credentials`,
  shown: words.key_shown,
  fields: [
    { name: 'name', label: words.key_name, kind: 'text' },
    DAYS,
    { name: 'permissions', label: words.permissions, kind: 'many', choices: permissions.map((one) => [one, one]) },
    { name: 'networks', label: words.networks, kind: 'text', optional: true },
    ...SCOPE_FIELDS,
  ],
  body: (typed) => ({
    kind: 'key',
    name: typedIn(typed, 'name'),
    permissions: typedIn(typed, 'permissions').split(' '),
    scope: scopeOf(typed),
    networks: typedIn(typed, 'networks')
      .split(/[\s,]+/)
      .filter(Boolean),
    expires_in_days: Number(typedIn(typed, 'days')),
  }),
})

const rotationOf = (path: string, { id, name }: Credential): Act => ({
  title: words.rotate_one(name),
  button: words.rotate,
  effect: words.rotate_effect,
  path: `${path}/credentials/${id}/rotate`,
  shown: words.key_shown,
  fields: [{ name: 'overlap', label: words.overlap, kind: 'number', value: '24' }, DAYS],
  body: (typed) => ({
    overlap_s: Number(typedIn(typed, 'overlap')) * 3600,
    expires_in_days: Number(typedIn(typed, 'days')),
  }),
})

const revocationOf = (path: string, { id, name }: Credential): Act => ({
  title: words.revoke_one(name),
  button: words.revoke,
  effect: words.revoke_effect,
  danger: true,
  method: 'DELETE',
  path: `${path}/credentials/${id}`,
})
