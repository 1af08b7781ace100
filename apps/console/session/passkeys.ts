import { startAuthentication, startRegistration } from '@simplewebauthn/browser'
import { sleep } from './wait.ts'

/** The challenge for the browser's passkey dialog, whose answer is null if the person closed it or has no passkey. */
type Challenge = { challenge: string; rp_id: string }
const required = 'required' as const

const askChallenge = async (): Promise<Challenge | null> => {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch('/v1/token/passkey-options', { method: 'POST', headers, body: '{}' }).catch(() => null)
  return answer?.ok ? ((await answer.json()) as Challenge) : null
}

/** Some password managers never answer once their window was closed. */
const LONGEST_MS = 180_000

/** Signs this challenge with one of the site's passkeys: any that the person chooses, or one of these. */
export const signWith = ({ challenge, rp_id }: Challenge, credential_ids: readonly string[] = []) => {
  const signed = startAuthentication({
    optionsJSON: {
      challenge,
      rpId: rp_id,
      userVerification: required,
      allowCredentials: credential_ids.map((id) => ({ id, type: 'public-key' as const })),
    },
  })
  return Promise.race([signed, sleep(LONGEST_MS).then(() => null)]).catch(() => null)
}

/** Proves a passkey to the server, to sign in or to confirm. */
export const proveKey = async () => {
  const asked = await askChallenge()
  return asked && signWith(asked)
}

/** Creates a new passkey for this person, different from the registered ones. */
export const makeKey = async (user: { user_id: string; username: string }, known: readonly string[]) => {
  const asked = await askChallenge()
  if (asked === null) return null
  const id = btoa(user.user_id).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  return startRegistration({
    optionsJSON: {
      challenge: asked.challenge,
      rp: { id: asked.rp_id, name: 'Signalbox' },
      user: { id, name: user.username, displayName: user.username },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ alg, type: 'public-key' as const })),
      excludeCredentials: known.map((one) => ({ id: one, type: 'public-key' as const })),
      authenticatorSelection: { residentKey: required, requireResidentKey: true, userVerification: required },
      attestation: 'none',
    },
  }).catch(() => null)
}
