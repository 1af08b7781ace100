import { randomBytes } from 'node:crypto'
import { createAuthenticator } from './authenticator.ts'

type Body = Record<string, unknown>
export type Answer = { status: number; body?: Body | undefined }
type Send = (path: string, body?: object, token?: string) => Promise<Answer>

/**
 * The first administrator of a production installation, who takes the link and signs in by password. The setup asks such
 * a role for a second factor: the first sign-in adds a passkey, and the others prove it.
 */
export const createAdministrator = (origin: string, send: Send) => {
  // One of each class that a password needs.
  const password = `Aa1-${randomBytes(9).toString('hex')}`
  const key = createAuthenticator({ origin, rp_id: new URL(origin).hostname })
  const options = () => send('/v1/token/passkey-options', {})
  const byPassword = () => send('/v1/token', { grant_type: 'password', username: 'root', password })
  return {
    enrol: (enrolment_token: string) => send('/api/v1/users/enrol', { enrolment_token, new_password: password }),
    /** Returns what the first sign-in may not do before there is a passkey, and the answer that added it. */
    addPasskey: async () => {
      const token = String((await byPassword()).body?.access_token)
      const { sub } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString() || '{}')
      const before = await send('/api/v1/operations', undefined, token)
      const attestation = key.attest(String((await options()).body?.challenge), String(sub))
      return { before, added: await send('/api/v1/users/me/passkeys', { name: 'key', attestation }, token) }
    },
    /** The answer that holds the tokens, or the refusal on the way to it. */
    signIn: async () => {
      const half = await byPassword()
      const factor_token = half.body?.factor_token
      if (factor_token === undefined) return half
      const asked = await options()
      if (asked.status !== 200) return asked
      const assertion = key.assert(String(asked.body?.challenge))
      return send('/v1/token', { grant_type: 'second_factor', factor_token, assertion })
    },
  }
}
