import Type from 'typebox'
import { Closed, GROUP_KEY, LINE, text, USERNAME } from '../shapes.ts'

const id = () => Type.String({ format: 'uuid' })
const time = () => Type.String({ format: 'date-time' })
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const place = (maxLength: number) => Type.String({ pattern: '^[!-~]+$', maxLength })

export const PageQuery = Type.Object({
  page_size: Type.Integer({ minimum: 1, maximum: 500, default: 50 }),
  page_token: Type.Optional(
    Type.String({ maxLength: 1024, description: 'next_page_token of the previous page; keep all filters.' }),
  ),
})
export const pageOf = <T extends Type.TSchema>(item: T) =>
  Type.Object({ items: Type.Array(item), next_page_token: nullable(Type.String()), as_of: time() })

export const GrantScope = Closed(
  {
    region_id: Type.Optional(place(128)),
    datacenter_id: Type.Optional(place(128)),
    layer_id: Type.Optional(place(128)),
    segment_id: Type.Optional(place(128)),
    type_key: Type.Optional(
      Type.String({
        pattern: '^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*\\.([a-z][a-z0-9_]*|\\*)$',
        maxLength: 64,
        description: 'A type such as fleet.host, or fleet.* for all below it. Leave it out for all types.',
      }),
    ),
  },
  { description: 'Where a grant applies: all given fields must match; none given means everywhere.' },
)
export const RoleName = Type.Enum([
  'viewer',
  'planner',
  'operator',
  'approver',
  'engineer',
  'admin',
  'auditor',
  'controller',
])

export const GrantView = Type.Object({
  id: id(),
  role: text('operator'),
  scope: GrantScope,
  expires_at: nullable(time()),
  via_group_key: nullable(Type.String()),
})
export const UserView = Type.Object({
  id: id(),
  username: text('olga'),
  kind: Type.Enum(['person', 'machine']),
  status: Type.Enum(['ACTIVE', 'DISABLED', 'DELETED']),
  created_at: time(),
  disabled_at: nullable(time()),
})
export const UserDetail = Type.Object({
  ...UserView.properties,
  roles: Type.Array(Type.String()),
  groups: Type.Array(Type.String()),
  grants: Type.Array(GrantView),
})
export const CurrentUser = Type.Object({
  ...UserDetail.properties,
  session: Type.Object({ id: id(), mode: Type.Enum(['json', 'cookie', 'machine']), auth_time: Type.Integer() }),
})
export const SessionsEnded = Type.Enum(['revoked', 'pending'], {
  description: 'Whether the sessions of the account have ended already; pending ones end within a moment.',
})
/** A user whose status was changed, and whether the sessions have already ended. */
export const UserMoved = Type.Object({ user: UserDetail, sessions: SessionsEnded })
export const Enrolment = Type.Object({
  token: text('e1.0195f0aa…'),
  url: text('https://signalbox.example/enrol#e1.0195f0aa…'),
  expires_at: time(),
})

export const GroupKey = text('netops', { pattern: GROUP_KEY })
export const NewGrant = Closed({ role: RoleName, scope: Type.Optional(GrantScope), expires_at: Type.Optional(time()) })
export const NewUser = Closed(
  {
    username: Type.String({ minLength: 1, maxLength: 64, pattern: USERNAME }),
    grants: Type.Optional(Type.Array(NewGrant, { maxItems: 20 })),
  },
  { examples: [{ username: 'nadia', grants: [{ role: 'operator', scope: { region_id: 'eu1' } }] }] },
)
export const Reason = Closed(
  { reason: text('reason', { minLength: 1, maxLength: 2000 }) },
  { examples: [{ reason: 'Left the team.' }] },
)
export const NewGroup = Closed(
  {
    group_key: GroupKey,
    name: text('Network operations', { minLength: 1, maxLength: 200, pattern: LINE }),
    description: Type.Optional(Type.String({ maxLength: 2000 })),
  },
  { examples: [{ group_key: 'storage', name: 'Storage team' }] },
)
/** `added_by`: `user:<id>`, `provider:<id>` or `system`; null for a membership that is older than this record. */
export const GroupMember = Type.Object({ ...UserView.properties, added_by: nullable(text('provider:corp')) })
export const GroupView = Type.Object({
  group_key: text('netops'),
  name: text('Network operations'),
  description: nullable(Type.String()),
  members: Type.Array(GroupMember),
  version: Type.Integer(),
  created_at: time(),
})
export const GroupPatch = Closed(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: LINE })),
    description: Type.Optional(nullable(Type.String({ maxLength: 2000 }))),
  },
  { examples: [{ name: 'Network operations, night shift' }], minProperties: 1 },
)
export const NewSubjectGrant = Closed(
  {
    subject_type: Type.Enum(['user', 'group']),
    subject_id: text('netops', { minLength: 1, maxLength: 64 }),
    ...NewGrant.properties,
  },
  { examples: [{ subject_type: 'group', subject_id: 'netops', role: 'approver' }] },
)
export const SubjectGrantView = Type.Object({
  id: id(),
  subject_type: Type.Enum(['user', 'group']),
  subject_id: text('netops'),
  role: text('operator'),
  scope: GrantScope,
  expires_at: nullable(time()),
})
export const ListedGrant = Type.Object({
  ...SubjectGrantView.properties,
  subject_name: nullable(text('olga', { description: 'The username; null for a group.' })),
})
export const Enrol = Closed(
  {
    enrolment_token: text('e1.0195f0aa…', { minLength: 1, maxLength: 512 }),
    new_password: Type.String({ minLength: 1, maxLength: 128 }),
  },
  { examples: [{ enrolment_token: 'e1.0195f0aa-….0195f0ab-….mYJ0…', new_password: 'Tr0mbone-Glacier-Napkin' }] },
)
export const EventView = Type.Object({
  at: time(),
  actor: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  roles: Type.Array(Type.String()),
  action: text('user.disabled'),
  object: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  outcome: text('done'),
  reason: nullable(Type.String()),
  request_id: nullable(Type.String()),
  details: nullable(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The change in words: for a grant, its subject, role and scope. No secrets.',
    }),
  ),
})

export const UserParams = Type.Object({ user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', { maxLength: 64 }) })
export const ListQuery = Type.Object({
  page_size: Type.Integer({ minimum: 1, maximum: 500, default: 50 }),
  page_token: Type.Optional(
    Type.String({ maxLength: 1024, description: 'next_page_token of the previous page; keep all filters.' }),
  ),
  status: Type.Optional(Type.Enum(['ACTIVE', 'DISABLED', 'DELETED'])),
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
})
export const UserList = Type.Object({
  items: Type.Array(UserDetail),
  next_page_token: Type.Union([Type.String(), Type.Null()]),
  as_of: text('2026-01-31T12:00:00.000Z'),
})
