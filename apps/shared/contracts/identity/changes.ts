import Type from 'typebox'
import { Closed, text } from '../shapes.ts'
import { CredentialKind, type CredentialRequest, Jwk, ShownKey, Trust } from './machines.ts'
import { GrantScope, NewGrant, type NewSubjectGrant, type NewUser, pageOf, SessionsEnded } from './users.ts'

const id = () => Type.String({ format: 'uuid' })
const time = () => Type.String({ format: 'date-time' })
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export type ChangeRequests = {
  'user.create': Type.Static<typeof NewUser>
  'user.enable': { user_id: string; reason: string }
  'user.reset': { user_id: string }
  'user.recover': { user_id: string }
  'grant.create': Type.Static<typeof NewSubjectGrant>
  'member.add': { group_key: string; user_id: string }
  'machine.credential': CredentialRequest
}
export const ChangeKind = Type.Enum([
  'user.create',
  'user.enable',
  'user.reset',
  'user.recover',
  'grant.create',
  'member.add',
  'machine.credential',
])
export const ChangeState = Type.Enum(['pending', 'confirmed', 'rejected', 'withdrawn', 'expired'])

const SHA256 = 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
/** The answer to a change that waits for a second administrator. */
export const PendingChange = Type.Object(
  { id: id(), kind: ChangeKind, digest: text(SHA256), requested_by: id(), expires_at: time() },
  { description: 'A change that waits for a second administrator.' },
)
export const Pending = Type.Object({ change: PendingChange })

/** A machine's pending credential; the key works once the change is confirmed. */
export const PendingCredential = Type.Object({ change: PendingChange, key: ShownKey })

export const ChangeSubject = Type.Object(
  {
    type: Type.Enum(['user', 'group']),
    id: nullable(Type.String()),
    name: text('eva'),
    status: nullable(Type.Enum(['ACTIVE', 'DISABLED', 'DELETED'])),
    version: nullable(Type.Integer()),
    roles: Type.Array(Type.String()),
    groups: Type.Array(Type.String()),
    members: Type.Array(Type.String()),
    gives: Type.Array(Type.String(), { description: 'The roles that the change grants, or that the account holds.' }),
  },
  { description: 'The person the change concerns; the digest covers it.' },
)
export type ChangeSubject = Type.Static<typeof ChangeSubject>

export const ChangeView = Type.Object({
  ...PendingChange.properties,
  status: ChangeState,
  request: Type.Object({
    username: Type.Optional(Type.String()),
    grants: Type.Optional(Type.Array(NewGrant)),
    user_id: Type.Optional(Type.String()),
    group_key: Type.Optional(Type.String()),
    subject_type: Type.Optional(Type.Enum(['user', 'group'])),
    subject_id: Type.Optional(Type.String()),
    role: Type.Optional(Type.String()),
    scope: Type.Optional(GrantScope),
    expires_at: Type.Optional(Type.String()),
    expires_in_days: Type.Optional(Type.Integer()),
    reason: Type.Optional(Type.String()),
    machine_id: Type.Optional(Type.String()),
    credential_id: Type.Optional(Type.String()),
    kind: Type.Optional(CredentialKind),
    name: Type.Optional(Type.String()),
    permissions: Type.Optional(Type.Array(Type.String())),
    networks: Type.Optional(Type.Array(Type.String())),
    jwk: Type.Optional(nullable(Jwk)),
    trust: Type.Optional(nullable(Trust)),
    replaces: Type.Optional(
      nullable(
        Type.Object(
          { credential_id: id(), overlap_s: Type.Optional(Type.Integer()) },
          { description: 'The key that this one replaces, and how long both work.' },
        ),
      ),
    ),
  }),
  subject: ChangeSubject,
  requested_at: time(),
  decided_by: nullable(Type.String()),
  decided_at: nullable(time()),
  user_id: nullable(id()),
})
export type ChangeView = Type.Static<typeof ChangeView>

export const Changes = Type.Object({
  ...pageOf(ChangeView).properties,
  control: Type.Object({
    dual_since: nullable(time()),
    notice: nullable(text('There is only one administrator, so no one checks these changes.')),
  }),
})
export const DecidedChange = Type.Object({ change: ChangeView, sessions: Type.Optional(SessionsEnded) })

export const Reviewed = Closed(
  { digest: text(SHA256, { minLength: 1, maxLength: 128 }) },
  { examples: [{ digest: SHA256 }] },
)
/** One half of an enrolment link; the person who enrols also needs the other half. */
export const EnrolmentHalf = Type.Object({
  half: Type.Object({
    part: Type.Enum(['first', 'second']),
    token: text('h1.0195f0aa…'),
    url: text('https://signalbox.example/enrol#h1.0195f0aa…'),
    expires_at: time(),
  }),
})
