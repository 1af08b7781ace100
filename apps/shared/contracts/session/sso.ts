import Type from 'typebox'
import { text } from '../text.ts'

/** Sign-in through an identity provider (federation.md 4). */
export const ProviderParams = Type.Object({ provider: text('corp', { pattern: '^[a-z][a-z0-9-]{0,31}$' }) })
export const IdentityProviderList = Type.Object({
  items: Type.Array(Type.Object({ id: text('corp'), title: text('Example Corp') })),
})
export const LocationReply = Type.Object({ location: text('https://login.example.com/authorize?client_id=signalbox') })
