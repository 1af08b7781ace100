import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { importJWK, type JWTVerifyGetKey } from 'jose'
import { getCredential, liveCredentials, noteUse, ownersOf, spendAssertion } from '../../../db/identity/machines.ts'
import { getUser, getUserByFolded } from '../../../db/identity/queries.ts'
import type { MachineCredentialRow, Trust, UserRow } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import type { AuthenticateMachineRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid } from '../../shared/ids.ts'
import { isWithin } from '../../shared/web/networks.ts'
import type { Uses } from '../deps.ts'
import { scopeMessage, userMessage } from '../principal.ts'
import { claimedBy, type Foreign, MachineRefused, verifyForeign } from './foreign.ts'
import { idOfKey, isKey } from './key-format.ts'

export type MachineDeps = Uses<'db' | 'clock' | 'config' | 'issuers'>

const ASSERTION_S = 300
const CI_TOKEN_S = 3600

type Proved = { user: UserRow; credential: MachineCredentialRow; foreign?: Foreign }

/**
 * Finds the machine that a credential proves. A refused one answers without a user and with the cause; whatever is
 * wrong, no row is written. Throws 503 while the keys of an issuer cannot be read.
 */
export const authenticateMachine = async (deps: MachineDeps, request: AuthenticateMachineRequest) => {
  try {
    const { user, credential, foreign } = await prove(deps, request)
    await refuseEnded(deps, user, credential)
    if (!isWithin(credential.networks, request.address)) throw new MachineRefused('network')
    if (foreign) await spend(deps, credential, foreign)
    await noteUse(deps.db, credential.id, request.address || null)
    return {
      user: userMessage(user),
      credentialId: credential.id,
      method: { key: 'key', jwk: 'pkjwt', trust: 'ci' }[credential.kind],
      permissions: credential.permissions,
      scope: scopeMessage(credential.scope),
      expiresAt: timestampFromDate(new Date(credential.expires_at)),
    }
  } catch (error) {
    // The id that a key bears is no secret: by it owners find what was refused.
    if (error instanceof MachineRefused) return { cause: error.reason, credentialId: idOfKey(request.apiKey) ?? '' }
    throw error
  }
}

const prove = (deps: MachineDeps, { apiKey, clientAssertion, subjectToken, machine }: AuthenticateMachineRequest) => {
  if (apiKey) return byKey(deps, apiKey)
  return clientAssertion ? byAssertion(deps, clientAssertion) : byCiToken(deps, subjectToken, machine)
}

const byKey = async ({ db }: MachineDeps, key: string): Promise<Proved> => {
  const id = idOfKey(key)
  if (id === undefined) throw new MachineRefused('malformed')
  const credential = isUuid(id) ? await getCredential(db, id) : undefined
  if (!credential?.secret_hash || !isKey(key, credential.secret_hash)) throw new MachineRefused('unknown')
  const user = await getUser(db, credential.machine_id)
  if (!user) throw new MachineRefused('unknown')
  return { user, credential }
}

const machineNamed = async ({ db }: MachineDeps, name: string): Promise<UserRow> => {
  const user = await getUserByFolded(db, foldUsername(name))
  if (user?.kind !== 'machine') throw new MachineRefused('unknown')
  return user
}

/** RFC 7523: signed with a key whose public half is registered; issuer and subject are the machine. */
const byAssertion = async (deps: MachineDeps, token: string): Promise<Proved> => {
  const { iss, kid } = claimedBy(token)
  const user = await machineNamed(deps, iss)
  const credentials = await liveCredentials(deps.db, user.id, 'jwk')
  const credential = credentials.find(({ jwk }) => jwk?.kid === kid)
  if (!credential?.jwk) throw new MachineRefused('key')
  const { jwk } = credential
  // The algorithm is that of the key, not that of the token.
  const keys: JWTVerifyGetKey = ({ alg }) => {
    if (alg !== jwk.alg) throw new MachineRefused('algorithm')
    return importJWK(jwk, alg as string)
  }
  const expected = { issuer: user.username, subject: user.username, audience: deps.config.AUTH__TOKENS__ISSUER }
  const foreign = await verifyForeign(token, keys, { ...expected, clock: deps.clock, max_s: ASSERTION_S })
  return { user, credential, foreign }
}

/** RFC 8693: a token of a CI system that this machine trusts, for its audience and with its claims. */
const byCiToken = async (deps: MachineDeps, token: string, name: string): Promise<Proved> => {
  const { iss } = claimedBy(token)
  const user = await machineNamed(deps, name)
  const trusts = await liveCredentials(deps.db, user.id, 'trust')
  const named = trusts.filter(({ trust }) => trust?.issuer === iss)
  if (named.length === 0 || !deps.issuers.has(iss)) throw new MachineRefused('issuer')
  const keys = await deps.issuers.keys(iss)
  const foreign = await verifyForeign(token, keys, { issuer: iss, clock: deps.clock, max_s: CI_TOKEN_S })
  const heard = named.filter(({ trust }) => trust?.audience === foreign.aud)
  if (heard.length === 0) throw new MachineRefused('audience')
  const credential = heard.find(({ trust }) => trust && differing(trust, foreign) === undefined)
  if (credential) return { user, credential, foreign }
  const subject = heard.some(({ trust }) => trust && differing(trust, foreign) === 'sub')
  throw new MachineRefused(subject ? 'subject' : 'claims')
}

/** The first claim that is not exactly the trusted one. */
const differing = ({ claims }: Trust, foreign: Foreign): string | undefined =>
  Object.entries(claims).find(([name, value]) => foreign[name] !== value)?.[0]

const refuseEnded = async ({ db, clock }: MachineDeps, user: UserRow, credential: MachineCredentialRow) => {
  if (credential.revoked_at !== null) throw new MachineRefused('revoked')
  if (Date.parse(credential.expires_at) <= clock.now().getTime()) throw new MachineRefused('expired')
  if (user.status !== 'ACTIVE') throw new MachineRefused('machine_disabled')
  const owners = await ownersOf(db, [user.id])
  if (!owners.some(({ status }) => status === 'ACTIVE')) throw new MachineRefused('no_owner')
}

const spend = async ({ db }: MachineDeps, { id }: MachineCredentialRow, { jti, exp }: Foreign) => {
  const row = { credential_id: id, jti, expires_at: new Date((exp + 60) * 1000).toISOString() }
  if (!(await spendAssertion(db, row))) throw new MachineRefused('replayed')
}
