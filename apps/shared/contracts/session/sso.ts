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
