import { sql } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import type Type from 'typebox'
import { type Tx, updateRows } from '../../../db/client.ts'
import { credentialsOf, lockCredential, ROTATED } from '../../../db/identity/machines.ts'
import { type MachineCredentialRow, machine_credentials } from '../../../db/identity/tables.ts'
import { PLACELESS } from '../../shared/auth/permissions.ts'
import {
  type CredentialRequest,
  DEFAULT_DAYS,
  type NewCredential,
  type Rotation,
} from '../../shared/contracts/identity/machines.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { isUuid, uuidv7 } from '../../shared/ids.ts'
import { publicKeyOf } from '../../shared/jwt/sound.ts'
import { isNetwork } from '../../shared/web/networks.ts'
import { perform } from '../control/changes.ts'
import { lockControl } from '../control/dual.ts'
import type { IdentityDeps } from '../deps.ts'
import { announce, changeOnce, ENDED_CREDENTIAL, marked } from '../mutations.ts'
import { throwIf } from '../rules.ts'
import { DAY_MS, noteShown } from './ending.ts'
import { makeKey } from './key-format.ts'
import { credentialMeasure, credentialView, detailsOf, lockMachine } from './measures.ts'

const invalid = (code: 'schema_violation' | 'issuer_not_trusted', detail: string, hint: string) =>
  new AppError('validation_error', code, detail, { status: 422, hint })

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

const refuseNetworks = (networks: readonly string[]) => {
  const wrong = networks.find((network) => !isNetwork(network))
  return wrong === undefined
    ? undefined
    : invalid(
        'schema_violation',
        `${wrong} is not a network.`,
        'Send networks such as 203.0.113.0/24 or 2001:db8::/32.',
      )
}

const ALG = { EdDSA: 'ed25519', ES256: 'ec', RS256: 'rsa' } as const

const refuseJwk = (jwk: NonNullable<CredentialRequest['jwk']>) => {
  try {
    if (publicKeyOf(jwk as never).asymmetricKeyType === ALG[jwk.alg]) return undefined
  } catch {}
  return invalid(
    'schema_violation',
    'The jwk is not a public key of its algorithm.',
    'Send an Ed25519, P-256 or RSA key (2048 to 4096 bits, exponent 65537).',
  )
}

/**
 * Claims that survive a rename: others can take over repository names. Servers of a company sign under issuers of their
 * own, so a trust is of the kind whose claims or subjects it names.
 */
const KINDS = [
  {
    issuer: 'https://token.actions.githubusercontent.com',
    names: /^(repository(_\w+)?$|job_workflow|workflow|environment$|ref$|enterprise)/,
    subject: /^(repo|repository\w*|job_workflow_ref|environment|ref|context|enterprise\w*):/,
    pinned: [
      ['repository_id', 'repository_owner_id', 'environment'],
      ['repository_id', 'repository_owner_id', 'job_workflow_ref', 'ref'],
    ],
  },
  {
    issuer: 'https://gitlab.com',
    names: /^(project_|namespace_|root_namespace|ref_|ci_config|pipeline_source$|environment$|ref$)/,
    subject: /^(project|namespace)_\w+:/,
    pinned: [['project_id', 'namespace_id', 'ref_protected']],
  },
]

const refuseTrust = ({ issuers }: IdentityDeps, { issuer, claims }: NonNullable<CredentialRequest['trust']>) => {
  if (!issuers.has(issuer))
    return invalid(
      'issuer_not_trusted',
      `This installation does not trust ${issuer}.`,
      'The deployer adds it to AUTH__MACHINES__ISSUERS.',
    )
  const known = KINDS.filter((kind) => kind.issuer === issuer)
  const alike = KINDS.filter(
    ({ names, subject }) => subject.test(claims.sub ?? '') || Object.keys(claims).some((name) => names.test(name)),
  )
  const sets = (known.length > 0 ? known : alike).flatMap(({ pinned }) => pinned)
  const wanted = sets.map((names) => names.join(', ')).join('; or ')
  if (sets.length > 0 && !sets.some((names) => names.every((name) => name in claims)))
    return invalid(
      'schema_violation',
      'The trust pins no claim that survives a rename.',
      `Name these claims: ${wanted}.`,
    )
  return claims.ref_protected === undefined || claims.ref_protected === 'true'
    ? undefined
    : invalid('schema_violation', 'The trust accepts jobs of unprotected branches.', 'Send ref_protected as "true".')
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
  await updateRows(tx, { id: row.id }, machine_credentials, { revoked_at: sql`clock_timestamp()` as never })
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
