import Type, { type Static } from 'typebox'
import { text } from '../shapes.ts'

/** Passkeys (federation.md 8): the browser's own JSON forms of WebAuthn, and a person's registered passkeys. */
const Bytes = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[A-Za-z0-9_-]+$' })
const answered = <R extends Record<string, Type.TSchema>>(response: R) =>
  Type.Object({
    id: Bytes(1400),
    rawId: Bytes(1400),
    type: Type.Literal('public-key'),
    response: Type.Object(response, { additionalProperties: Type.Unknown() }),
    clientExtensionResults: Type.Object({}, { additionalProperties: Type.Unknown() }),
    authenticatorAttachment: Type.Optional(Type.String({ maxLength: 32 })),
  })
export const Assertion = answered({
  clientDataJSON: Bytes(4096),
  authenticatorData: Bytes(4096),
  signature: Bytes(2048),
  userHandle: Type.Optional(Type.String({ maxLength: 128 })),
})
export type Assertion = Static<typeof Assertion>
export const Attestation = answered({ clientDataJSON: Bytes(4096), attestationObject: Bytes(10_000) })

export const PasskeyChallenge = Type.Object({
  challenge: text('q1w2e3r4t5z6u7i8o9p0a1s2d3f4g5h6j7k8l9y0x1c'),
  rp_id: text('signalbox.example.com'),
  expires_in: Type.Integer(),
})
export const PasskeyView = Type.Object({
  id: text('0195f0c2-0000-7000-8000-000000000021'),
  credential_id: text('q1w2e3r4t5z6u7i8'),
  name: text('MacBook of eva'),
  created_at: text('2026-11-22T10:00:00.000Z'),
  last_used_at: Type.Union([Type.String(), Type.Null()]),
  backed_up: Type.Boolean({ description: 'Kept by its provider, on several devices.' }),
})
export type PasskeyView = Static<typeof PasskeyView>
export const PasskeyList = Type.Object({ items: Type.Array(PasskeyView) })
