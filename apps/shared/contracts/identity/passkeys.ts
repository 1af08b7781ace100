import Type, { type Static } from 'typebox'
import { text } from '../shapes.ts'

/** The public key of a passkey, and whose it is. */
export const PersonKey = Type.Object({
  user_id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  username: text('eva'),
  credential_id: text('mD3Rk1'),
  jwk: Type.Record(Type.String(), Type.String()),
  created_at: text('2026-01-31T12:00:00.000Z'),
})
export type PersonKey = Static<typeof PersonKey>
