import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { type RegistrationResponseJSON, verifyRegistrationResponse } from '@simplewebauthn/server'
import { eq } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable } from '../../../db/client.ts'
import { countPasskeys, deletePasskeys, insertPasskey, passkeysOf } from '../../../db/identity/passkeys.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import { external_identities, type PasskeyRow, user_events } from '../../../db/identity/tables.ts'
import type { Fields } from '../../shared/contracts/client/votes.ts'
import type { AddPasskeyRequest, RemovePasskeyRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { publicKeyOf } from '../../shared/jwt/sound.ts'
import type { Uses } from '../deps.ts'
import { mayGainWayIn } from '../rules.ts'
import { jwkOf } from './jwk.ts'

export type Deps = Uses<'config' | 'db' | 'keys'>

/** EdDSA, ES256, RS256: the algorithms that plain crypto can verify offline. */
const ALGORITHMS = [-8, -7, -257]
const MOST = 10

export const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))

export const message = (row: PasskeyRow) => ({
  id: row.id,
  credentialId: row.credential_id,
  name: row.name,
  createdAt: timestampFromDate(new Date(row.created_at)),
  ...(row.last_used_at && { lastUsedAt: timestampFromDate(new Date(row.last_used_at)) }),
  backedUp: row.backed_up,
  jwk: JSON.stringify(jwkOf(bytesOf(row.public_key))),
})

export const listPasskeys = async ({ config, db }: Deps, user_id: string) => ({
  passkeys: isUuid(user_id) ? (await passkeysOf(db, user_id)).map(message) : [],
  rpId: config.webauthn.rp_id,
})

export const expected = ({ config: { webauthn } }: Deps, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: webauthn.origins,
  expectedRPID: webauthn.rp_id,
  requireUserVerification: true,
})

/** The library's result, or the reason for its refusal: it throws on every mismatch. */
export const orCause = async <T extends { verified: boolean }>(
  { clientDataJSON }: { clientDataJSON: string },
  verify: () => Promise<T>,
): Promise<T | string> => {
  try {
    const { crossOrigin } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8')) as Fields
    // Another site's page around ours could hide what the person confirms (WebAuthn 3, 13.4.9).
    if (crossOrigin === true) return 'crossOrigin'
    const answer = await verify()
    return answer.verified ? answer : 'signature'
  } catch (error) {
    return (error as Error).message.slice(0, 200)
  }
}

/** Registers a person's passkey; the caller has spent the challenge. */
export const addPasskey = async (deps: Deps, request: AddPasskeyRequest, request_id: string) => {
  const { userId: user_id, name, challenge, attestation } = request
  const response = JSON.parse(attestation) as RegistrationResponseJSON
  const answer = await orCause(response.response, async () => {
    const options = { response, ...expected(deps, challenge), supportedAlgorithmIDs: ALGORITHMS }
    const registered = await verifyRegistrationResponse(options)
    if (registered.registrationInfo) publicKeyOf(jwkOf(registered.registrationInfo.credential.publicKey))
    return registered
  })
  if (typeof answer === 'string' || !answer.registrationInfo)
    return { refused: 'assertion_invalid', cause: String(answer) }
  const { credential, credentialBackedUp } = answer.registrationInfo
  const public_key = Buffer.from(credential.publicKey).toString('base64url')
  return deps.db.transaction(async (tx) => {
    const user = await lockUser(tx, user_id)
    if (!mayGainWayIn(user)) return { refused: 'assertion_invalid', cause: 'account' }
    // The registration made this key, so its answer was lost and comes again.
    const known = (await passkeysOf(tx, user_id)).find(({ credential_id }) => credential_id === credential.id)
    if (known?.public_key === public_key) return { passkey: message(known) }
    if ((await countPasskeys(tx, user_id)) >= MOST) return { refused: 'too_many_passkeys' }
    const row = await insertPasskey(tx, {
      id: uuidv7(),
      user_id,
      credential_id: credential.id,
      public_key,
      counter: credential.counter,
      backed_up: credentialBackedUp,
      name,
    })
    if (!row) return { refused: 'passkey_known' }
    await note(deps, tx, 'user.passkey_added', row, request_id)
    return { passkey: message(row) }
  })
}

/** Removes a passkey; a person must keep one way to sign in. */
export const removePasskey = (
  deps: Deps & Uses<'providers'>,
  { userId, id, hasPassword }: RemovePasskeyRequest,
  request_id: string,
) =>
  deps.db.transaction(async (tx) => {
    // Unlinking a provider takes this lock too.
    await lockUser(tx, userId)
    const own = (await passkeysOf(tx, userId)).some((passkey) => passkey.id === id)
    if (own && !hasPassword && !(await hasAnotherWay(deps, tx, userId, id))) return { refused: 'last_way_in' }
    const [row] = own ? await deletePasskeys(tx, userId, id) : []
    if (row) await note(deps, tx, 'user.passkey_removed', row, request_id)
    return { removed: row !== undefined }
  })

/** Whether another passkey, or an identity at a provider in the file, remains without this one. */
const hasAnotherWay = async (
  { providers }: Uses<'providers'>,
  tx: Queryable,
  user_id: string,
  passkey: string,
): Promise<boolean> => {
  if ((await passkeysOf(tx, user_id)).some(({ id }) => id !== passkey)) return true
  const identities = await tx.select().from(external_identities).where(eq(external_identities.user_id, user_id))
  // A provider that is no longer in the file signs no one in.
  return identities.some(({ provider }) => providers.get(provider) !== undefined)
}

export const note = (
  { keys }: Pick<Deps, 'keys'>,
  tx: Parameters<typeof appendAuditTo>[0],
  action: string,
  row: PasskeyRow,
  request_id: string,
  actor = `user:${row.user_id}`,
) =>
  appendAuditTo(tx, user_events, keys.audit, {
    actor,
    action,
    object: `user:${row.user_id}`,
    outcome: 'done',
    after: { passkey: row.id, credential_id: row.credential_id, name: row.name },
    request_id,
  })
