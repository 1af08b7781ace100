import { verifyAuthenticationResponse } from '@simplewebauthn/server'
import type { Passkeys } from '../../../apps/operations/deps.ts'
import { type Authenticator, createAuthenticator } from '../../support/authenticator.ts'

const SITE = { origin: 'https://console.test', rp_id: 'console.test' }

/** Replaces identity for verifying passkeys: with the same library, over keys of this process. */
export const createTestPasskeys = () => {
  const known = new Map<string, { user_id: string; key: Authenticator; counter: number }>()
  const passkeys: Passkeys = {
    of: async (user_id) => ({
      rp_id: SITE.rp_id,
      credential_ids: [...known].flatMap(([id, one]) => (one.user_id === user_id ? [id] : [])),
    }),
    verify: async (user_id, challenge, assertion) => {
      const response = JSON.parse(assertion)
      const one = known.get(response.id)
      if (one?.user_id !== user_id) return undefined
      const credential = { id: response.id, publicKey: one.key.public_key as never, counter: one.counter }
      const site = { expectedOrigin: SITE.origin, expectedRPID: SITE.rp_id }
      try {
        const done = await verifyAuthenticationResponse({ response, expectedChallenge: challenge, credential, ...site })
        if (!done.verified) return undefined
        one.counter = done.authenticationInfo.newCounter
        return { credential_id: response.id, jwk: one.key.jwk() }
      } catch {
        return undefined
      }
    },
  }
  /** A passkey of this person. */
  const enrol = (user_id: string, kind?: 'ES256' | 'EdDSA' | 'RS256'): Authenticator => {
    const key = createAuthenticator(SITE, kind && { kind })
    known.set(key.credential_id, { user_id, key, counter: 0 })
    return key
  }
  return { passkeys, enrol }
}
