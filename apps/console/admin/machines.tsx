import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { isPrivateKey } from '../../shared/contracts/identity/jwk.ts'
import type { MachineRow } from '../api/types.ts'
import { objectIn } from '../forms/json.tsx'
import { Refusals } from '../machines/refusals.tsx'
import { machinesQuery } from '../queries/admin.ts'
import { rowsOf } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { type Column, Listing } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'
import { type Act, useActs } from './acts.tsx'
import { type FormField, partsOf, SCOPE_FIELDS, scopeOf, scopeWords, type Typed, typedIn } from './fields.tsx'
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
    fields: [
      { name: 'name', label: words.name, kind: 'text' },
      { name: 'owners', label: words.owners, kind: 'people' },
    ],
    body: (typed) => ({ name: typedIn(typed, 'name'), owners: partsOf(typedIn(typed, 'owners')) }),
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
      cell: ({ last_used_at, unused }) => (
        <>
          {last_used_at ? <TimeText at={last_used_at} /> : tAdmin.never}
          {unused ? ` · ${words.unused}` : null}
        </>
      ),
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
          {button(addingOwner(machine, path))}
          {button(newKey(machine, path, permissions))}
          {button(newJwk(machine, path, permissions))}
          {button(newTrust(machine, path, permissions))}
        </span>
      }
    >
      <Table
        caption={words.keys(machine.username)}
        empty={words.no_keys}
        columns={columns}
        rows={machine.credentials}
      />
      <Refusals machine={machine} />
    </Card>
  )
}

/** The permissions of the roles that a machine may hold; a key allows some of them. */
const usePermissions = (): string[] => [
  ...new Set(useRoles().flatMap(({ machines, permissions }) => (machines ? permissions : []))),
]

const DAYS = { name: 'days', label: words.days, kind: 'number', value: '90' } as const

const addingOwner = ({ username, owners }: MachineRow, path: string): Act => ({
  title: `${words.add_owner}: ${username}`,
  button: words.add_owner,
  effect: words.owner_effect,
  method: 'PUT',
  path: (typed) => `${path}/owners/${typedIn(typed, 'person')}`,
  fields: [{ name: 'person', label: words.owner, kind: 'person', except: owners.map(({ id }) => id) }],
})

/** The fields that every credential has, and the part of the request that they make. */
const limitsOf = (name: string, permissions: string[]): FormField[] => [
  { name: 'name', label: name, kind: 'text' },
  DAYS,
  { name: 'permissions', label: words.permissions, kind: 'many', choices: permissions.map((one) => [one, one]) },
  { name: 'networks', label: words.networks, kind: 'text', optional: true },
  ...SCOPE_FIELDS,
]
const limitsIn = (typed: Typed) => ({
  name: typedIn(typed, 'name'),
  permissions: partsOf(typedIn(typed, 'permissions')),
  scope: scopeOf(typed),
  networks: typedIn(typed, 'networks')
    .split(/[\s,]+/)
    .filter(Boolean),
  expires_in_days: Number(typedIn(typed, 'days')),
})

const newKey = ({ username }: MachineRow, path: string, permissions: string[]): Act => ({
  title: `${words.new_key}: ${username}`,
  button: words.new_key,
  effect: words.key_effect,
  path: `${path}/credentials`,
  shown: words.key_shown,
  fields: limitsOf(words.key_name, permissions),
  body: (typed) => ({ kind: 'key', ...limitsIn(typed) }),
})

const newJwk = ({ username }: MachineRow, path: string, permissions: string[]): Act => ({
  title: `${words.new_jwk}: ${username}`,
  button: words.new_jwk,
  effect: words.jwk_effect,
  path: `${path}/credentials`,
  fields: [{ name: 'jwk', label: words.jwk, kind: 'json' }, ...limitsOf(words.columns.name, permissions)],
  body: (typed) => ({ kind: 'jwk', ...limitsIn(typed), jwk: objectIn(typedIn(typed, 'jwk')) }),
  wrong: (typed) => (isPrivateKey(objectIn(typedIn(typed, 'jwk'))) ? words.private_half : undefined),
})

const newTrust = ({ username }: MachineRow, path: string, permissions: string[]): Act => ({
  title: `${words.new_trust}: ${username}`,
  button: words.new_trust,
  effect: words.trust_effect,
  path: `${path}/credentials`,
  fields: [
    { name: 'issuer', label: words.issuer, kind: 'text', value: 'https://token.actions.githubusercontent.com' },
    { name: 'audience', label: words.audience, kind: 'text', value: location.origin },
    { name: 'claims', label: words.claims, kind: 'json' },
    ...limitsOf(words.columns.name, permissions),
  ],
  body: (typed) => ({
    kind: 'trust',
    ...limitsIn(typed),
    trust: {
      issuer: typedIn(typed, 'issuer'),
      audience: typedIn(typed, 'audience'),
      claims: objectIn(typedIn(typed, 'claims')),
    },
  }),
})

const rotationOf = (path: string, { id, name }: Credential): Act => ({
  title: words.rotate_one(name),
  button: words.rotate,
  effect: words.rotate_effect,
  path: `${path}/credentials/${id}/rotate`,
  shown: words.key_shown,
  fields: [
    { name: 'overlap', label: words.overlap, kind: 'number', value: '24' },
    { ...DAYS, value: '', optional: true },
  ],
  body: (typed) => ({
    overlap_s: Number(typedIn(typed, 'overlap')) * 3600,
    // Only the server knows how many days a key that was rotated before had.
    expires_in_days: Number(typedIn(typed, 'days')) || undefined,
  }),
})

const revocationOf = (path: string, { id, name }: Credential): Act => ({
  title: words.revoke_one(name),
  button: words.revoke,
  effect: words.revoke_effect,
  accepted: tAdmin.user.sessions_pending,
  danger: true,
  method: 'DELETE',
  path: `${path}/credentials/${id}`,
})
