import Type from 'typebox'
import { Closed, LINE, MACHINE_NAME, NETWORK, text } from '../shapes.ts'
import { GrantScope, pageOf } from './users.ts'

const id = () => Type.String({ format: 'uuid' })
const time = () => Type.String({ format: 'date-time' })
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** The permissions that a credential may carry: those of a machine's role, or of the providers file (scim:write). */
export const MachinePermission = Type.Enum([
  'catalog:read',
  'operation:read',
  'log:read',
  'intent:create',
  'patch:propose',
  'plan:start',
  'operation:control',
  'operation:intervene',
  'catalog:write',
  'catalog:record',
  'signal:send',
  'identity:read',
  'audit:read',
  'scim:write',
])
export const CredentialKind = Type.Enum(['key', 'jwk', 'trust'])

export const Trust = Closed(
  {
    issuer: text('https://token.actions.githubusercontent.com', { maxLength: 512 }),
    audience: text('https://signalbox.example', { minLength: 1, maxLength: 512 }),
    claims: Type.Record(
      Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$' }),
      Type.String({ minLength: 1, maxLength: 512 }),
      {
        additionalProperties: false,
        minProperties: 1,
        maxProperties: 16,
        examples: [{ repository_id: '42', environment: 'prod' }],
        description: 'Claims that a token must hold with exactly these texts.',
      },
    ),
  },
  { description: 'Tokens of a CI system that stand for the machine.' },
)
export const Jwk = Closed(
  {
    kty: Type.Enum(['OKP', 'EC', 'RSA']),
    kid: text('ci-2026', { pattern: '^[A-Za-z0-9_-]{1,64}$' }),
    alg: Type.Enum(['EdDSA', 'ES256', 'RS256']),
    crv: Type.Optional(Type.String({ maxLength: 16 })),
    x: Type.Optional(Type.String({ maxLength: 128 })),
    y: Type.Optional(Type.String({ maxLength: 128 })),
    n: Type.Optional(Type.String({ maxLength: 1024 })),
    e: Type.Optional(Type.String({ maxLength: 16 })),
    use: Type.Optional(Type.Literal('sig')),
  },
  { description: 'The public half of a signing key.' },
)

const Network = text('203.0.113.0/24', { pattern: NETWORK, description: 'CIDR.' })

export const NewMachine = Closed(
  {
    name: text('ci-deploy', { pattern: MACHINE_NAME }),
    owners: Type.Array(id(), { minItems: 1, maxItems: 5, uniqueItems: true, description: 'People who answer for it.' }),
  },
  { examples: [{ name: 'ci-deploy', owners: ['0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'] }] },
)
/** How long a credential is valid if no one says otherwise. */
export const DEFAULT_DAYS = 90
export const NewCredential = Closed(
  {
    kind: CredentialKind,
    name: text('GitHub', { minLength: 1, maxLength: 100, pattern: LINE }),
    permissions: Type.Array(MachinePermission, { minItems: 1, uniqueItems: true }),
    scope: Type.Optional(GrantScope),
    networks: Type.Optional(
      Type.Array(Network, {
        maxItems: 16,
        uniqueItems: true,
        description: 'The networks it may be used from; none: anywhere.',
      }),
    ),
    expires_in_days: Type.Integer({ minimum: 1, maximum: 365, default: DEFAULT_DAYS }),
    jwk: Type.Optional(Jwk),
    trust: Type.Optional(Trust),
  },
  {
    examples: [{ kind: 'key', name: 'deploy', permissions: ['operation:read', 'intent:create'], expires_in_days: 90 }],
  },
)
export const Rotation = Closed(
  {
    overlap_s: Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 86_400,
      description:
        'How long the first key still works. Tokens from it outlast the overlap by up to 900 s; with 0 they end at once, with the key.',
    }),
    expires_in_days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 365,
        description: `By default as many as the first key was given, or ${DEFAULT_DAYS} if it was rotated before.`,
      }),
    ),
  },
  { examples: [{ overlap_s: 3600, expires_in_days: 90 }] },
)

export const CredentialView = Type.Object({
  id: id(),
  kind: CredentialKind,
  name: text('GitHub'),
  permissions: Type.Array(text('operation:read')),
  scope: GrantScope,
  networks: Type.Array(text('203.0.113.0/24')),
  jwk: nullable(Jwk),
  trust: nullable(Trust),
  created_at: time(),
  expires_at: time(),
  revoked_at: nullable(time()),
  last_used_at: nullable(time()),
  last_address: nullable(text('203.0.113.7')),
  unused: Type.Boolean({
    description: 'Valid, but its owners were told that it was not used for 90 days, and it was not used since.',
    examples: [false],
  }),
})
const Person = Type.Object({ id: id(), username: text('olga'), status: Type.Enum(['ACTIVE', 'DISABLED', 'DELETED']) })
export const MachineView = Type.Object({
  id: id(),
  username: text('machine:ci-deploy'),
  status: Type.Enum(['ACTIVE', 'DISABLED', 'DELETED']),
  roles: Type.Array(text('operator')),
  owners: Type.Array(Person),
  credentials: Type.Array(CredentialView),
  created_at: time(),
})
export type MachineView = Type.Static<typeof MachineView>
export const Machines = pageOf(MachineView)

export const ShownKey = Type.Optional(
  text('sbk_…', {
    description:
      'The API key. Only the first answer shows it; a repeated request gets the same answer without it. If it was lost, rotate the key, which makes another. While the change is pending, withdraw that and request a new one.',
  }),
)
/** An ended credential whose tokens are still being ended. */
export const EndingCredential = Type.Object({ sessions: Type.Literal('pending') })
export const MadeCredential = Type.Object({ credential: CredentialView, key: ShownKey })

/** The request of the change `machine.credential`. It holds only the hash of a key. */
export type CredentialRequest = {
  credential_id: string
  machine_id: string
  kind: Type.Static<typeof CredentialKind>
  name: string
  permissions: string[]
  scope: Type.Static<typeof GrantScope>
  networks: string[]
  /** From the moment when it is made, which may be three days later. */
  expires_in_days?: number
  /** An older build requested its end. */
  expires_at?: string
  secret_hash: string | null
  jwk: Type.Static<typeof Jwk> | null
  trust: Type.Static<typeof Trust> | null
  /** The key that this one replaces, and how long both work from then on; a day if an older build requested it. */
  replaces: { credential_id: string; overlap_s?: number } | null
}
