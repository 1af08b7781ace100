import Type, { type Static } from 'typebox'
import { text } from '../shapes.ts'

/** A person's authenticator app (RFC 6238, federation.md 8): a second factor that signs no vote. */
export const TotpCode = Type.String({ pattern: '^[0-9]{6}$', description: 'The 6 digits that the app shows.' })

export const TotpView = Type.Object({
  active: Type.Boolean({ description: 'Whether a code is asked for after the password.' }),
  created_at: Type.Union([Type.String(), Type.Null()]),
  last_used_at: Type.Union([Type.String(), Type.Null()]),
})
export type TotpView = Static<typeof TotpView>

export const TotpSetup = Type.Object({
  secret: text('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', { description: 'For an app that reads no QR code. Shown once.' }),
  uri: text('otpauth://totp/Signalbox:eva?issuer=Signalbox&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', {
    description: 'What the QR code says.',
  }),
  setup: text('6f1c2d3e4b5a6978.q1w2e3r4t5z6u7i8', { description: 'Send it back with the first code.' }),
  expires_at: text('2026-11-22T10:10:00.000Z'),
})
export type TotpSetup = Static<typeof TotpSetup>

export const TotpBody = Type.Object(
  { setup: Type.String({ minLength: 1, maxLength: 1024 }), code: TotpCode },
  { additionalProperties: false, examples: [{ setup: '6f1c2d3e4b5a6978.q1w2e3r4t5z6u7i8', code: '287082' }] },
)
