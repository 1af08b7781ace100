import { createPublicKey } from 'node:crypto'
import { SNAPSHOT } from '../../../db/client.ts'
import { appendAudit, stateFacts } from '../../../db/operations/facts/state.ts'
import { listEvidence } from '../../../db/operations/history/timeline.ts'
import { getOperation } from '../../../db/operations/operations/read.ts'
import { actorOfCaller, type Caller } from '../../shared/auth/caller.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { exportEvidence } from '../../shared/evidence/verify.ts'
import type { Uses } from '../deps.ts'

const PAGE = 1000

/**
 * Returns the whole evidence of an operation as a signed file (operations.md 6.3), for the person who requested the
 * operation and for auditors. Records and head are from the same moment. Throws policy_denied.
 */
export const exportOf = async (
  { db, trust, clock, keys }: Uses<'clock' | 'db' | 'keys' | 'trust'>,
  { caller, request_id }: { caller: Caller; request_id: string },
  { operation_id, requester_id }: { operation_id: string; requester_id: string },
): Promise<string> => {
  if (caller.user_id !== requester_id && !caller.permissions.has('audit:read'))
    throw new AppError(
      'policy_denied',
      'permission_missing',
      'Only the requester and holders of audit:read may export evidence.',
      { hint: 'Ask an auditor, or the person who requested the operation.' },
    )
  const { records, row } = await db.transaction(async (tx) => {
    const found: Awaited<ReturnType<typeof listEvidence>> = []
    for (let page = found; page === found || page.length === PAGE; found.push(...page))
      page = await listEvidence(tx, operation_id, found.at(-1)?.seq ?? 0, PAGE)
    return { records: found, row: await getOperation(tx, operation_id) }
  }, SNAPSHOT)
  if (!row) throw notFound('operation', operation_id)
  const head = {
    type: 'head' as const,
    operation_id,
    seq: row.evidence_seq,
    hash: row.evidence_hash,
    plan_hash: records[0]?.prev_hash ?? row.evidence_hash,
    made_at: clock.now().toISOString(),
  }
  const file = exportEvidence(records, head, trust.evidence_key)
  // Who exported the evidence is itself a fact: it is recorded before a byte leaves.
  const actor = actorOfCaller(caller)
  await db.transaction(async (tx) => {
    const data = { seq: head.seq, hash: head.hash, kid: trust.evidence_key.kid }
    await stateFacts(tx, operation_id, { request_id, events: [{ type: 'export.made', actor, data }] })
    await appendAudit(tx, keys.audit, {
      actor: `user:${caller.user_id}`,
      roles: caller.roles,
      action: 'evidence.export',
      object: `operation:${operation_id}`,
      outcome: 'done',
      after: data,
      request_id,
    })
  })
  return file
}

/** The public half of the key that signs exports. */
export const evidenceKeys = ({ trust: { evidence_key } }: Uses<'trust'>) => {
  const { x = '' } = createPublicKey(evidence_key.private_key).export({ format: 'jwk' })
  const key = { kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x, kid: evidence_key.kid } as const
  return { keys: [key] }
}
