import { type AuthenticationResponseJSON, verifyAuthenticationResponse } from '@simplewebauthn/server'
import { notePasskeyUse, passkeyByCredential } from '../../../db/identity/passkeys.ts'
import { lastProofs } from '../../../db/identity/queries.ts'
import { scimById } from '../../../db/identity/scim.ts'
import type { UserRow } from '../../../db/identity/tables.ts'
import type { VerifyAssertionRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { publicKeyOf } from '../../shared/jwt/sound.ts'
import type { Uses } from '../deps.ts'
import { userMessage } from '../principal.ts'
import { refuseClosedLogin } from '../rules.ts'
import { jwkOf } from './jwk.ts'
import { bytesOf, type Deps, expected, message, note, orCause } from './passkeys.ts'

/**
 * Whose passkey signed this challenge here, with user verification. The caller has issued the challenge and accepts it
 * only once; the authenticator's counter is updated by compare-and-set.
 */
export const verifyAssertion = async (
  deps: Deps & Uses<'providers'>,
  { userId, challenge, assertion }: VerifyAssertionRequest,
  request_id: string,
) => {
  const response = JSON.parse(assertion) as AuthenticationResponseJSON
  const known = await passkeyByCredential(deps.db, String(response.id))
  if (!known || (userId && known.user.id !== userId)) return { cause: known ? 'other_user' : 'unknown' }
  const { passkey: row, user } = known
  const { userHandle } = response.response
  if (userHandle && Buffer.from(userHandle, 'base64url').toString() !== row.user_id) return { cause: 'user_handle' }
  if (user.status !== 'ACTIVE') return { cause: 'account' }
  const { credential_id: id, counter } = row
  const publicKey = bytesOf(row.public_key)
  const verify = (counter: number) =>
    orCause(response.response, () => {
      // It may have been stored before these rules.
      publicKeyOf(jwkOf(publicKey))
      const credential = { id, publicKey, counter }
      return verifyAuthenticationResponse({ response, ...expected(deps, challenge), credential })
    })
  const answer = await verify(counter)
  if (typeof answer === 'string') {
    // The library reads the counter before the signature: only a true one shows that a copy of the passkey exists.
    if (/counter/.test(answer) && typeof (await verify(0)) !== 'string')
      await deps.db.transaction((tx) => note(deps, tx, 'user.passkey_cloned', row, request_id, 'system'))
    return { cause: answer }
  }
  // Without a user it is a sign-in; any other answer belongs to a session that ends when the provider says so.
  const footing = userId ? undefined : await footingOf(deps, user)
  if (footing?.restS === 0) return { cause: 'unproved', footing }
  const { newCounter, credentialBackedUp } = answer.authenticationInfo
  const used = await notePasskeyUse(deps.db, row.id, newCounter, credentialBackedUp)
  return used ? { user: userMessage(user), passkey: message(used), ...(footing && { footing }) } : { cause: 'counter' }
}

/**
 * What a passkey's sign-in rests on: of an account that a provider created, or whose person has only linked ones left
 * because its password is closed. A directory tells who has left; without one only the sign-ins through a provider do,
 * so it lasts no longer than a session of the last of them.
 */
const footingOf = async ({ config, db, providers }: Deps & Uses<'providers'>, { id, username, provider }: UserRow) => {
  if (provider === null && !refuseClosedLogin(config.break_glass, username)) return undefined
  const proofs = await lastProofs(db, id)
  const resting = provider === null ? proofs.map((one) => one.provider) : [provider]
  const footings = []
  for (const providerId of resting) {
    const known = providers.get(providerId)
    if (known?.scim && (await scimById(db, providerId, 'User', id))) return undefined
    const proof = proofs.find((one) => one.provider === providerId)
    const rest_s = known && proof ? Math.max(0, known.session_max_s - proof.age_s) : 0
    footings.push({ providerId, subject: proof?.subject ?? '', restS: Math.floor(rest_s) })
  }
  return footings.sort((a, b) => b.restS - a.restS)[0]
}
