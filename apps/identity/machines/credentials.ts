import type { FastifyRequest } from 'fastify'
import type Type from 'typebox'
import { type Tx, updateRows } from '../../../db/client.ts'
import { credentialsOf, lockCredential, ROTATED } from '../../../db/identity/machines.ts'
import { type MachineCredentialRow, machine_credentials } from '../../../db/identity/tables.ts'
import { NOW } from '../../../db/rows.ts'
import { PLACELESS } from '../../shared/auth/permissions.ts'
import {
  type CredentialRequest,
  DEFAULT_DAYS,
  type NewCredential,
  type Rotation,
} from '../../shared/contracts/identity/machines.ts'
import { notFound } from '../../shared/errors.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { perform } from '../control/changes.ts'
import { lockControl } from '../control/dual.ts'
import type { IdentityDeps } from '../deps.ts'
import { announce, changeOnce, ENDED_CREDENTIAL, marked } from '../mutations.ts'
import { throwIf } from '../rules.ts'
import { DAY_MS, noteShown } from './ending.ts'
import { makeKey } from './key-format.ts'
import { credentialMeasure, credentialView, detailsOf, lockMachine } from './measures.ts'
import { invalid, refuseJwk, refuseNetworks, refuseTrust } from './refuse.ts'

/** POST adm/machines/{machine_id}/credentials: the credential, or the pending change. Only this answer shows a key. */
export const createCredential = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  machine_id: string,
  wanted: Type.Static<typeof NewCredential>,
) => {
  const { kind, name, permissions, scope = {}, networks = [], expires_in_days, jwk = null, trust = null } = wanted
  if ((kind === 'jwk') !== (jwk !== null) || (kind === 'trust') !== (trust !== null))
    throw invalid(
      'schema_violation',
      `The body does not match a credential of kind ${kind}.`,
      'Send jwk for jwk, trust for trust, neither for key.',
    )
  if (jwk) throwIf(refuseJwk(jwk))
  if (trust) throwIf(refuseTrust(deps, trust))
  throwIf(refuseNetworks(networks))
  const placeless = permissions.filter((one) => PLACELESS.has(one))
  if (placeless.length > 0 && Object.keys(scope).length > 0)
    throw invalid(
      'schema_violation',
      `A scope cannot limit ${placeless.join(' and ')}: accounts and logs have no place.`,
      'Leave out the scope, or make a separate credential for these permissions.',
    )
  return make(deps, req, {
    machine_id,
    kind,
    name,
    permissions,
    scope,
    networks,
    expires_in_days,
    jwk,
    trust,
    replaces: null,
  })
}

/** POST …/credentials/{credential_id}/rotate: a second key with the same rights; the first ends after the overlap. */
export const rotateKey = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  { machine_id, credential_id }: { machine_id: string; credential_id: string },
  { overlap_s, expires_in_days }: Type.Static<typeof Rotation>,
) => {
  const known = isUuid(machine_id) ? await credentialsOf(deps.db, [machine_id]) : []
  const old = known.find(({ id, kind }) => id === credential_id && kind === 'key')
  if (!old) throw notFound('key', credential_id, 'not_found')
  const { name, permissions, scope, networks } = old
  return make(deps, req, {
    machine_id,
    kind: 'key',
    name,
    permissions,
    scope: scope as CredentialRequest['scope'],
    networks,
    expires_in_days: expires_in_days ?? daysOf(old),
    jwk: null,
    trust: null,
    replaces: { credential_id, overlap_s },
  })
}

/** How long a key was meant to be valid. A rotation has cut its end: then it is the length of a new credential. */
const daysOf = ({ told, created_at, expires_at }: MachineCredentialRow): number =>
  told === ROTATED ? DEFAULT_DAYS : Math.max(1, Math.round((Date.parse(expires_at) - Date.parse(created_at)) / DAY_MS))

const make = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  wanted: Omit<CredentialRequest, 'credential_id' | 'secret_hash'>,
) => {
  const credential_id = uuidv7()
  const made = wanted.kind === 'key' ? makeKey(credential_id) : undefined
  const request: CredentialRequest = { ...wanted, credential_id, secret_hash: made?.secret_hash ?? null }
  const stored = await perform(deps, req, { kind: 'machine.credential', request }, credentialMeasure)
  const body = JSON.parse(stored.body.toString('utf8')) as object
  const shown = made && !stored.replayed ? { key: made.key } : {}
  return { replayed: stored.replayed, status: stored.status, body: { ...body, ...shown } }
}

/**
 * DELETE …/credentials/{credential_id}, by one administrator. Waits until the relay has ended its tokens (204), for at most
 * 2 s (202).
 */
export const revokeCredential = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  of: { machine_id: string; credential_id: string },
) => {
  const stored = await endCredential(deps, req, of)
  if (await marked(deps, { credential_id: of.credential_id })) return stored
  return { ...stored, status: 202, body: Buffer.from(JSON.stringify({ sessions: 'pending' })) }
}

/** Ends a locked credential and, by the event, its tokens. */
export const endRow = async (tx: Tx, cause: Parameters<typeof announce>[1], row: MachineCredentialRow) => {
  await updateRows(tx, { id: row.id }, machine_credentials, { revoked_at: NOW })
  await noteShown(tx, row.machine_id, new Date())
  await announce(tx, cause, ENDED_CREDENTIAL, { user_id: row.machine_id, credential_id: row.id })
}

const endCredential = (
  deps: IdentityDeps,
  req: FastifyRequest,
  { machine_id, credential_id }: { machine_id: string; credential_id: string },
) =>
  changeOnce(deps, req, { arming: false }, async (tx) => {
    await lockControl(deps, tx)
    const machine = await lockMachine(tx, machine_id)
    const row = isUuid(credential_id) ? await lockCredential(tx, machine.id, credential_id) : undefined
    if (!row) throw notFound('credential', credential_id, 'not_found')
    if (row.revoked_at === null) await endRow(tx, req, row)
    return {
      status: 204,
      body: undefined,
      action: 'machine.credential_revoked',
      object: `user:${machine.id}`,
      before: credentialView(row),
      details: detailsOf(row),
    }
  })
