import type { ErrorObject } from 'ajv'
import type { BatchApply, BatchItem } from '../../shared/contracts/imports/batch.ts'
import { AppError } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { invalid } from '../../shared/http/problems.ts'
import { checkScope, type ServiceCaller } from '../../shared/service/tokens.ts'
import { type Asked, deniedOf, type Item, type Outcome, refusedAt, replyOf, runItems } from '../changes/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { healthObservation, operationResult, providedCapabilities } from './record.ts'

/** `ends_at`: when the caller gets a timeout. Then no further command starts, and an atomic batch fails as a whole. */
export type BatchSender = { service: ServiceCaller; request_id: string; ends_at: number }
/** Returns where a command violates the schema of its kind; `undefined` if it fits. */
export type CheckShape = (kind: BatchItem['kind'], command: unknown) => ErrorObject[] | undefined

/** The route whose command an item is. Its scope and keys are that route's, so either may repeat the command. */
const KINDS = {
  apply: {
    scope: 'results:apply',
    route: 'POST /internal/v1/resources/:resource_id/apply-operation-result',
    asked: operationResult,
  },
  capabilities: {
    scope: 'capabilities:report',
    route: 'POST /internal/v1/resources/:resource_id/provided-capabilities',
    asked: providedCapabilities,
  },
  health: {
    scope: 'health:report',
    route: 'POST /internal/v1/resources/:resource_id/health-observations',
    asked: healthObservation,
  },
} as const

/**
 * Many commands in one request (catalog.md 7.5, 8). Each has its own id and key and is answered as if it had come
 * alone. The checks and their order are the same, and a repeat returns the same bytes. `independent`: each stands
 * alone; those of one resource apply in order. `atomic`: all, or none and the first refusal with its index.
 */
export const applyBatch = async (
  deps: CatalogDeps,
  { mode, items }: BatchApply,
  sender: BatchSender,
  check: CheckShape,
): Promise<{ body: string; denied: AppError[] }> => {
  const atomic = mode === 'atomic'
  const outcomes: Outcome[] = new Array(items.length)
  const ready: Item[] = []
  for (const [index, item] of items.entries()) {
    try {
      ready.push({ ...prepare(deps, item, sender, check), index })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (atomic) throw atItem(error, index)
      outcomes[index] = error
    }
  }
  await runItems(deps, ready, outcomes, { atomic, ends_at: sender.ends_at, atItem })
  const body = replyOf(outcomes, sender.request_id, '/internal/v1/resources:batch-apply')
  return { body, denied: deniedOf(outcomes, atItem) }
}

const atItem = refusedAt('command')

const prepare = (deps: CatalogDeps, { kind, command }: BatchItem, from: BatchSender, check: CheckShape): Asked => {
  const { scope, route, asked } = KINDS[kind]
  checkScope(from.service, scope)
  const errors = check(kind, command)
  if (errors) throw invalid(errors, 'body', CATALOG_CODES)
  const { resource_id: path_id } = command as { resource_id: string }
  return asked(deps, command as never, { service: from.service, route, request_id: from.request_id, path_id })
}
