import type { ErrorObject } from 'ajv'
import { fingerprintOf } from '../../../db/command/keys.ts'
import type { BulkOp, BulkRequest } from '../../shared/contracts/imports/bulk.ts'
import { AppError } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { invalid } from '../../shared/http/problems.ts'
import { deniedOf, type Item, type Outcome, refusedAt, replyOf, runItems, tryItems } from '../changes/run.ts'
import type { Command } from '../command/keys.ts'
import { causing, commandOf, NO_COMMAND, type Write } from '../command/request.ts'
import { publicCommandId } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { prepare } from './items.ts'

/** Returns where a change violates the schema of its kind; `undefined` if it fits. */
export type CheckShape = (op: BulkOp, change: unknown) => ErrorObject[] | undefined

/**
 * Many changes in one request (catalog.md 7.4, "Bulk"). Each is refused or made as if it had come alone. Its key is
 * derived from the request's key: a repeat returns the first answer for items already made and retries the rest. The
 * request's key fits one content: another list of items under it is refused as a whole.
 * `atomic`: all, or none and the first refusal.
 */
export const bulkResources = async (
  deps: CatalogDeps,
  { atomic = false, items }: BulkRequest,
  write: Write,
  check: CheckShape,
): Promise<{ body: string; denied: AppError[] }> => {
  const outcomes: Outcome[] = new Array(items.length)
  const tried = write.query.validate_only === true
  const key = tried ? '' : commandOf(deps, write).idempotency_key
  const ready: Item[] = []
  const together = items.flatMap(({ op, change }) => (atomic && op === 'retire' ? String(change.resource_id) : []))
  for (const [index, item] of items.entries()) {
    try {
      const errors = check(item.op, item.change)
      if (errors) throw invalid(errors, 'body', CATALOG_CODES)
      const command = partOf(deps, write, `${key} ${index}`, { item })
      const { wish, make } = prepare(deps, item, { ...write, together })
      const command_id = tried ? NO_COMMAND : command.command_id
      ready.push({ command, wish, index, work: (tx, stamp) => make(tx, causing(write, command_id, stamp)) })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (atomic) throw atItem(error, index)
      outcomes[index] = error
    }
  }
  const whole = partOf(deps, write, `${key} all`, { atomic, items })
  const how = { atomic, ends_at: write.ends_at, atItem, whole }
  await (tried ? tryItems : runItems)(deps, ready, outcomes, how)
  return { body: replyOf(outcomes, write.request_id, '/v1/resources:bulk'), denied: deniedOf(outcomes, atItem) }
}

const atItem = refusedAt('change')

/** A command that is part of this request: one of its items, or the request itself, whose key fits one content only. */
const partOf = ({ keys }: CatalogDeps, write: Write, idempotency_key: string, content: object): Command => {
  const scope = `user:${write.caller.user_id} ${write.route}`
  const { mode, reason, manager, force } = write.query
  const how = { mode: mode ?? null, reason: reason ?? null, ...(manager && { manager }), ...(force && { force }) }
  return {
    command_id: publicCommandId(scope, idempotency_key),
    scope,
    idempotency_key,
    fingerprint: fingerprintOf(keys.fingerprint, { ...how, ...content }),
    kind: 'public',
  }
}
