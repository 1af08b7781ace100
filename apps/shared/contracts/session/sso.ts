import Type from 'typebox'
import { ArrayOf, text } from '../shapes.ts'

/** Sign-in through an identity provider (federation.md 4). */
export const ProviderParams = Type.Object({ provider: text('corp', { pattern: '^[a-z][a-z0-9-]{0,31}$' }) })
export const IdentityProviderList = Type.Object({
  items: Type.Array(Type.Object({ id: text('corp'), title: text('Example Corp') })),
  passwords: Type.Enum(['all', 'break_glass'], {
    description: 'Whose password signs in; break_glass: emergency accounts.',
  }),
})
/** A person's identities at the providers. */
export const ExternalIdentityList = Type.Object({
  items: ArrayOf({
    provider: text('corp'),
    subject: text('4f1c2a', { description: 'The name of the person there; it never changes.' }),
    linked_at: Type.String({ format: 'date-time' }),
  }),
})
export type ExternalIdentityList = Type.Static<typeof ExternalIdentityList>
export const LocationReply = Type.Object({ location: text('https://login.example.com/authorize?client_id=signalbox') })

/** A test sign-in at a provider: its claims, and what a sign-in with them would do. */
const orNull = (example: string, description: string) => Type.Union([text(example), Type.Null()], { description })
const names = (example: string, description: string) => Type.Array(text(example), { description })
export const ProviderTrial = Type.Object({
  provider: text('corp'),
  claims: Type.Union(
    [
      Type.Object({
        subject: text('4f1c2a'),
        username: orNull('eva', 'The claim that names a new account.'),
        email: orNull('eva@example.com', 'Never finds an account.'),
        email_verified: Type.Boolean(),
        groups: Type.Union([Type.Array(text('noc')), Type.Null()], {
          description: 'As the provider names them; null: it only says where they could be read, so rights stay.',
        }),
        methods: names('mfa', 'How the person proved who they are (RFC 8176).'),
        auth_time: orNull('2026-01-31T12:00:00.000Z', 'When the person typed their credentials; null: not said.'),
        directory_id: orNull('4f1c2a', 'The id by which SCIM knows the person.'),
      }),
      Type.Null(),
    ],
    { description: 'The claims that count here; null if the answer itself was refused.' },
  ),
  second_factor: Type.Boolean({ description: 'Whether such a sign-in counts as two factors.' }),
  outcome: Type.Enum(['known', 'linked', 'created', 'refused'], {
    description: 'The account has signed in here before; its directory made it; it would be made; or there is none.',
  }),
  account: orNull('eva', 'The name of the account.'),
  groups: names('netops', 'The groups that the person would be in.'),
  roles: names('operator', 'The roles that the person would have, here or there.'),
  refusal: Type.Union([
    Type.Object({ code: text('no_account'), detail: text('You have no account here yet.') }),
    Type.Null(),
  ]),
})
export type ProviderTrial = Type.Static<typeof ProviderTrial>
