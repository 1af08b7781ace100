import type { JsonWebKey } from 'node:crypto'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import type { JWTVerifyGetKey } from 'jose'
import { credentialById, liveCredentials, noteUse, spendAssertion } from '../../../db/identity/machines.ts'
import { getUserByFolded } from '../../../db/identity/queries.ts'
import type { MachineCredentialRow, Trust, UserRow } from '../../../db/identity/tables.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import type { AuthenticateMachineRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../../shared/errors.ts'
import { isUuid, uuidv5 } from '../../shared/ids.ts'
import { publicKeyOf } from '../../shared/jwt/sound.ts'
import { within } from '../../shared/sleep.ts'
import { isWithin } from '../../shared/web/networks.ts'
import type { Uses } from '../deps.ts'
import { scopeMessage, userMessage } from '../principal.ts'
import { claimedBy, type Foreign, MachineRefused, verifyForeign } from './foreign.ts'
import { idIn, idOfKey, isKey } from './key-format.ts'

export type MachineDeps = Uses<'db' | 'clock' | 'config' | 'issuers'>

const ASSERTION_S = 300
/** The namespace of the ids under which the tokens of an issuer are spent. */
const ISSUERS = '6d1b0c52-90f4-5c1e-8a3d-2f7e41b9c6a8'
const CI_TOKEN_S = 3600
/** How long an issuer may take, within the 2 s of the call. */
const ISSUER_MS = 1500
/** The shortest interval between two records of a last use, because each record is a write. */
const NOTE_MS = 60_000

type Found = { user: UserRow; credential: MachineCredentialRow; owned: boolean }
type Proved = Found & { foreign?: Foreign }

/**
 * Finds the machine that a credential proves. A refusal returns the cause and no user; whatever the fault, no row is
 * written. Throws `aborted`, a 503 at our callers, while an issuer's keys cannot be read.
 */
export const authenticateMachine = async (deps: MachineDeps, request: AuthenticateMachineRequest) => {
  try {
    const proved = await prove(deps, request)
    const { user, credential, foreign } = proved
    refuseEnded(deps, proved)
    if (!isWithin(credential.networks, request.address)) throw new MachineRefused('network')
    if (foreign) await spend(deps, credential, foreign)
    if (Date.parse(credential.last_used_at ?? '1970-01-01') < deps.clock.now().getTime() - NOTE_MS)
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
    // The id in a key is not secret; it lets owners find which key was refused.
    if (error instanceof MachineRefused)
      return { cause: error.reason, claim: error.claim ?? '', ...(await namedBy(deps, request)) }
    throw error
  }
}

/** What a refused credential names, for the owners. All of it is unproved. */
const namedBy = async ({ db }: MachineDeps, { apiKey, clientAssertion, machine }: AuthenticateMachineRequest) => {
  if (apiKey) {
    const credentialId = idIn(apiKey)
    const named = isUuid(credentialId) ? await credentialById(db, credentialId) : undefined
    return { credentialId, machineId: named?.user.id ?? '' }
  }
  const user = await getUserByFolded(db, foldUsername(clientAssertion ? issuerOf(clientAssertion) : machine))
  return { machineId: user?.kind === 'machine' ? user.id : '' }
}

const issuerOf = (token: string): string => {
  try {
    return claimedBy(token).iss
  } catch {
    return ''
  }
}

const prove = (deps: MachineDeps, { apiKey, clientAssertion, subjectToken, machine }: AuthenticateMachineRequest) => {
  if (apiKey) return byKey(deps, apiKey)
  return clientAssertion ? byAssertion(deps, clientAssertion) : byCiToken(deps, subjectToken, machine)
}

const byKey = async ({ db }: MachineDeps, key: string): Promise<Proved> => {
  const id = idOfKey(key)
  if (id === undefined) throw new MachineRefused('malformed')
  const found = isUuid(id) ? await credentialById(db, id) : undefined
  if (!found?.credential.secret_hash || !isKey(key, found.credential.secret_hash)) throw new MachineRefused('unknown')
  return found
}

/** The current credentials of one kind that can prove the machine of this name. */
const provable = async ({ db }: MachineDeps, name: string, kind: MachineCredentialRow['kind']): Promise<Found[]> => {
  const rows = await liveCredentials(db, foldUsername(name), kind)
  if (rows.length === 0) throw new MachineRefused('unknown')
  return rows.flatMap((row) => (row.credential ? [{ ...row, credential: row.credential }] : []))
}

/** RFC 7523: signed with a key whose public half is registered; issuer and subject are the machine. */
const byAssertion = async (deps: MachineDeps, token: string): Promise<Proved> => {
  const { iss, kid } = claimedBy(token)
  const found = (await provable(deps, iss, 'jwk')).find(({ credential }) => credential.jwk?.kid === kid)
  if (!found?.credential.jwk) throw new MachineRefused('key')
  const { jwk } = found.credential
  const { username } = found.user
  // The key determines the algorithm, not the token.
  const keys: JWTVerifyGetKey = ({ alg }) => {
    if (alg !== jwk.alg) throw new MachineRefused('algorithm')
    return keyOf(jwk)
  }
  const expected = { issuer: username, subject: username, audience: deps.config.AUTH__TOKENS__ISSUER }
  const foreign = await verifyForeign(token, keys, { ...expected, clock: deps.clock, max_s: ASSERTION_S })
  return { ...found, foreign }
}

/** A key may have been stored before these rules. */
const keyOf = (jwk: Record<string, unknown>) => {
  try {
    return publicKeyOf(jwk as JsonWebKey)
  } catch {
    throw new MachineRefused('key')
  }
}

/** RFC 8693: a token of a CI system that this machine trusts, for its audience and with its claims. */
const byCiToken = async (deps: MachineDeps, token: string, name: string): Promise<Proved> => {
  const { iss } = claimedBy(token)
  const trusts = await provable(deps, name, 'trust')
  const named = trusts.filter(({ credential: { trust } }) => trust?.issuer === iss)
  const keys = deps.issuers.get(iss)
  if (named.length === 0 || !keys) throw new MachineRefused('issuer')
  const expected = { issuer: iss, clock: deps.clock, max_s: CI_TOKEN_S }
  const foreign = await within(verifyForeign(token, keys, expected), ISSUER_MS, issuerAway).catch((error: unknown) => {
    throw error instanceof AppError ? issuerAway() : error
  })
  const heard = named.filter(({ credential: { trust } }) => trust?.audience === foreign.aud)
  if (heard.length === 0) throw new MachineRefused('audience')
  const found = heard.find(({ credential: { trust } }) => trust && differing(trust, foreign) === undefined)
  if (found) return { ...found, foreign }
  const claims = heard.map(({ credential: { trust } }) => trust && differing(trust, foreign))
  throw claims.includes('sub') ? new MachineRefused('subject') : new MachineRefused('claims', claims[0] ?? undefined)
}

/** Our callers answer 503, but do not take identity itself for away: that would stop every sign-in. */
const issuerAway = () => new ConnectError('The issuer of the token is not available.', Code.Aborted)

/** The first claim that does not equal the trusted one. */
const differing = ({ claims }: Trust, foreign: Foreign): string | undefined =>
  Object.entries(claims).find(([name, value]) => foreign[name] !== value)?.[0]

const refuseEnded = ({ clock }: MachineDeps, { user, credential, owned }: Found) => {
  if (credential.revoked_at !== null) throw new MachineRefused('revoked')
  if (Date.parse(credential.expires_at) <= clock.now().getTime()) throw new MachineRefused('expired')
  if (user.status !== 'ACTIVE') throw new MachineRefused('machine_disabled')
  if (!owned) throw new MachineRefused('no_owner')
}

/** A CI token is its issuer's, so it counts once for all credentials that trust it; an assertion is of one key. */
const spend = async ({ db }: MachineDeps, { id, trust }: MachineCredentialRow, { jti, exp }: Foreign) => {
  const row = {
    credential_id: trust ? uuidv5(ISSUERS, trust.issuer) : id,
    jti,
    expires_at: new Date((exp + 60) * 1000).toISOString(),
  }
  if (!(await spendAssertion(db, row))) throw new MachineRefused('replayed')
}
