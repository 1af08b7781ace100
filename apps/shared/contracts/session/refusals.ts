import Type from 'typebox'
import { text } from '../shapes.ts'

/** Why a machine got no token, by the cause in the audit log, for those who answer for it. */
export const REFUSAL_WORDS = {
  malformed: 'It is not a key or a token of the form that is expected.',
  unknown: 'Its key is not known, or the machine has none of this kind that is valid.',
  revoked: 'The credential, or the session of its tokens, was ended a moment before.',
  expired: 'The credential has expired.',
  machine_disabled: 'The machine is disabled.',
  no_owner: 'The machine has no active owner.',
  issuer: 'No trust of the machine names the issuer of the token.',
  audience: 'The token is for another audience.',
  subject: 'The token is about another subject than the trust demands.',
  algorithm: 'The token is signed by another algorithm than its key allows.',
  key: 'The token names a key that is not known.',
  signature: 'The signature of the token does not match its key.',
  time: 'The token has expired, is too old, lives too long, or a clock is wrong.',
  claims: 'The token lacks a claim, or has another value than the trust demands.',
  replayed: 'The token was used before: each counts once.',
  network: 'The address is outside the networks of the credential.',
  client_id: 'The request names another machine.',
  scope: 'The request asks for more than the credential permits, or for none of it.',
} as const
export type RefusalCause = keyof typeof REFUSAL_WORDS

const Nullable = (example: string, description: string) =>
  Type.Union([text(example), Type.Null()], { description, examples: [example] })
export const RefusalView = Type.Object({
  at: Type.String({ format: 'date-time' }),
  cause: Type.Enum(Object.keys(REFUSAL_WORDS) as RefusalCause[], {
    description: 'Why. What a refused credential states about itself is not proved.',
  }),
  credential_id: Nullable('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10', 'The credential, if it names one.'),
  claim: Nullable('environment', 'The claim that differs, of the cause claims.'),
  address: Nullable('203.0.113.7', 'Where the request came from.'),
})
export type RefusalView = Type.Static<typeof RefusalView>
export const Refusals = Type.Object({
  items: Type.Array(RefusalView),
  next_page_token: Type.Union([Type.String(), Type.Null()]),
  as_of: Type.String({ format: 'date-time' }),
})
