import Type from 'typebox'
import { text } from '../shapes.ts'

/** Sign-in of a device without a browser (RFC 8628). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export const DeviceAuthorization = Type.Object({
  device_code: text('q1w2e3r4t5z6u7i8o9p0a1s2d3f4g5h6j7k8l9y0x1c'),
  user_code: text('BDFG-HJKL'),
  verification_uri: text('https://signalbox.example.com/device'),
  verification_uri_complete: text('https://signalbox.example.com/device?code=BDFG-HJKL'),
  expires_in: Type.Integer(),
  interval: Type.Integer({ description: 'Seconds between two polls of POST /v1/token.' }),
})
export const DeviceRequestView = Type.Object({
  user_code: text('BDFG-HJKL'),
  client_id: text('signalbox-cli'),
  host: text('ci-7', { description: 'As the machine calls itself.' }),
  ip_address: Type.Union([Type.String(), Type.Null()]),
  user_agent: Type.Union([Type.String(), Type.Null()]),
  asked_at: text('2026-11-22T10:00:00.000Z'),
  expires_at: text('2026-11-22T10:10:00.000Z'),
  same_address: Type.Boolean({ description: 'Whether the caller comes from the same address.' }),
})
/** The code that a person has typed; case, dashes and blanks do not matter. */
export const DeviceCode = Type.Object(
  { user_code: text('BDFG-HJKL', { minLength: 1, maxLength: 32 }) },
  { additionalProperties: false, examples: [{ user_code: 'BDFG-HJKL' }] },
)
