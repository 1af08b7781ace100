import { canonicalJson, digest, hmacSha256 } from '../../apps/shared/digest.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import type { Tx } from '../client.ts'
import { audit } from './tables.ts'

export type AuditEntry = {
  /** `user:<uuid>`, `svc:<name>`, `system`. */
  actor: string
  on_behalf_of?: string | null
  roles?: readonly string[]
  action: string
  /** `operation:<id>`, `gate:<operation id>/<gate id>` … */
  object: string
  outcome: 'done' | 'denied'
  reason?: string | null
  before?: unknown
  after?: unknown
  request_id?: string | null
  command_id?: string | null
}

/**
 * One row per mutation, per 403 and per security event, in the transaction of the change (reliability.md 5.4). `mac`
 * binds the body to the app's key; the relay seals the rows into a chain.
 */
export const appendAudit = async (tx: Tx, key: Uint8Array, entry: AuditEntry): Promise<void> => {
  const { before, after, roles = [], ...rest } = entry
  const columns = {
    ...rest,
    roles: [...roles],
    before_hash: before === undefined ? null : digest(before),
    after_hash: after === undefined ? null : digest(after),
  }
  const body = canonicalJson({ audit_id: uuidv7(), ...columns })
  await tx.insert(audit).values({ ...columns, body, mac: hmacSha256(key, body).toString('hex') })
}
