import { type AuditEntry, appendAuditTo } from '../../audit.ts'
import type { Tx } from '../../client.ts'
import { audit } from '../tables/index.ts'

/** Adds one row to operations' audit log, in the transaction of the change. */
export const appendAudit = (tx: Tx, key: Uint8Array, entry: AuditEntry): Promise<void> =>
  appendAuditTo(tx, audit, key, entry)
