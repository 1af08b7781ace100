import { pgSchema } from 'drizzle-orm/pg-core'
import { auditTable } from '../../audit.ts'
import { idempotencyTable } from '../../command/keys.ts'
import { inboxTables } from '../../inbox.ts'
import { outboxTables } from '../../outbox.ts'

export const operationsSchema = pgSchema('operations')

export const { outbox, relay_state } = outboxTables(operationsSchema)
export const inboxOf = inboxTables(operationsSchema)
export const { inbox, projection_version, dead_letter, projection } = inboxOf
export const idempotency = idempotencyTable(operationsSchema)

/** One row per mutation and per 403; the relay seals it later (reliability.md 5.4). */
export const audit = auditTable(operationsSchema, 'audit')

/** All fences come from one sequence: each claim gets a larger one, so that a late process is recognized. */
export const fence_seq = operationsSchema.sequence('fence_seq')
