import Type, { type Static } from 'typebox'
import { text } from '../shapes.ts'
import { pageOf } from './users.ts'

/** The identity providers as they are in force (federation.md 4), without their secrets. */
const texts = (example: string) => Type.Array(text(example))
export const ProviderView = Type.Object({
  id: text('corp'),
  title: text('Example Corp'),
  enabled: Type.Boolean(),
  issuer: text('https://id.example.com'),
  people: Type.Integer({ description: 'Accounts with an identity of this provider.' }),
  creates_accounts: Type.Boolean({ description: 'Whether a first sign-in creates an account.' }),
  requires: Type.Array(
    Type.Object({
      kind: Type.Enum(['group', 'claim', 'domain', 'method'], {
        description: 'One of the groups, all claims, one of the domains, one of the methods (RFC 8176).',
      }),
      value: text('staff'),
    }),
    { description: 'What a sign-in must show. Groups and claims are asked of new accounts only.' },
  ),
  max_role: text('planner', { description: 'The highest role that the map may grant.' }),
  session_max_s: Type.Integer({ description: 'The longest life of its sessions, in seconds.' }),
  groups_claim: Type.Union([text('groups'), Type.Null()]),
  map: Type.Array(Type.Object({ name: text('noc'), groups: texts('netops'), roles: texts('operator') }), {
    description: 'Groups of the provider, and the groups and roles that their members have here.',
  }),
  scim: Type.Union([
    Type.Object({
      machine: text('machine:corp-directory'),
      match: Type.Enum(['sub', 'oid']),
      people: Type.Integer({ description: 'People that the directory maintains.' }),
      groups: Type.Integer({ description: 'Groups that the directory maintains.' }),
      changed_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
        description: 'When the directory last changed one of them.',
      }),
    }),
    Type.Null(),
  ]),
})
export type ProviderView = Static<typeof ProviderView>

export const ProviderViews = Type.Object({
  items: Type.Array(ProviderView),
  fault: Type.Union([text('providers.0.issuer is missing.'), Type.Null()], {
    description: 'Why the file as it is now cannot be used; the providers listed stay in force.',
  }),
})

const Account = { id: Type.String({ format: 'uuid' }), username: text('olga') }
export const UnlinkedUser = Type.Object({
  ...Account,
  roles: texts('operator'),
  created_at: Type.String({ format: 'date-time' }),
  emergency: Type.Boolean({ description: 'One of AUTH__LOCAL__USERS, while passwords are for emergencies.' }),
  enrolled: Type.Boolean({ description: 'Whether the person has set a password.' }),
  twins: Type.Array(Type.Object(Account), {
    description: 'Accounts of a provider whose names begin alike: perhaps of the same person.',
  }),
})
export type UnlinkedUser = Static<typeof UnlinkedUser>
export const UnlinkedUsers = pageOf(UnlinkedUser)
