import { SNAPSHOT, type Tx } from '../../../db/client.ts'
import { listChanged, type TargetChanged } from '../../../db/operations/history/changed.ts'
import { getOperation } from '../../../db/operations/operations/read.ts'
import { loadResources, loadTypes } from '../../../db/operations/plans/planning.ts'
import { getIntent } from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import type { Rollback, RollbackQuery } from '../../shared/contracts/operations/operations.ts'
import { canonicalJson } from '../../shared/data/digest.ts'
import { pick } from '../../shared/data/pick.ts'
import { equalJson, readPointer, tokensOf } from '../../shared/data/pointer.ts'
import { AppError, type CodeOf, notFound } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import type { ResourceType, TargetDiff } from '../graph/types.ts'
import { diffOf } from '../plans/difference.ts'
import { requireVisible } from './read.ts'

/** The most targets that an intent names one by one. */
const TARGETS = 100
const TITLE = 200

/**
 * The intents that bring the targets of an ended operation back to their state before it: the desired values before, or
 * the commit that was in force. It makes none of them, and each needs a plan and its gates like any other.
 */
export const readRollback = async (
  { db }: Uses<'db'>,
  caller: Caller,
  operation_id: string,
  query: RollbackQuery,
): Promise<Rollback> => {
  await requireVisible({ db }, caller, operation_id)
  return db.transaction((tx) => rollbackIn(tx, operation_id, query), SNAPSHOT)
}

const refused = (code: CodeOf<'invalid_state_transition'>, detail: string, extra: Record<string, unknown> = {}) =>
  new AppError('invalid_state_transition', code, detail, { extra })

const rollbackIn = async (tx: Tx, operation_id: string, query: RollbackQuery): Promise<Rollback> => {
  const row = await getOperation(tx, operation_id)
  if (!row) throw notFound('operation', operation_id)
  const { summary } = row
  if (summary.ended_at === null) throw refused('operation_running', 'The operation has not ended.')
  const changed = (await listChanged(tx, operation_id)).filter(
    ({ target_id }) => query.resource_id?.includes(target_id) ?? true,
  )
  if (changed.length === 0)
    throw refused(
      'nothing_changed',
      'The operation changed no desired state of these targets, and applied no source to them.',
    )
  const intent = await getIntent(tx, summary.intent_id)
  const { change } = (intent?.request ?? {}) as Partial<IntentBody>
  if (change && change.op !== 'update')
    throw refused('no_state_before', `Its targets were ${change.op}d: there is no earlier state to return to.`)
  const { types } = await loadTypes(tx)
  const typeOf = new Map(types.map(({ document }) => [String(document.type_key), document as unknown as ResourceType]))
  const ids = changed.map(({ target_id }) => target_id)
  const resources = new Map((await loadResources(tx, ids)).map((resource) => [resource.resource_id, resource]))
  const diffs = new Map((await diffOf(tx, summary)).map((diff) => [diff.resource_id, diff]))
  const groups = new Map<string, { way: Way; targets: Rollback['intents'][number]['targets_resolved'] }>()
  for (const one of changed) {
    const resource = resources.get(one.target_id)
    const ended = typeOf.get(resource?.type_key ?? '')?.lifecycle.terminal ?? []
    if (!resource || ended.includes(resource.lifecycle_status))
      throw refused('target_gone', `"${one.target_id}" no longer exists.`, { resource_id: one.target_id })
    const diff = diffs.get(one.target_id)
    if (!query.anyway) refuseMoved(one, diff, resource.desired_state)
    const way = wayBack(one, diff)
    const key = canonicalJson(way)
    const targets = groups.get(key)?.targets ?? []
    groups.set(key, { way, targets: [...targets, pick(resource, 'resource_id', 'type_key', 'name', 'version')] })
  }
  const request = {
    title: `Roll back: ${summary.title}`.slice(0, TITLE),
    reason: `Undo operation ${operation_id}`,
    labels: summary.labels,
    retry_of: operation_id,
    ...(summary.ticket !== null && { ticket: summary.ticket }),
  }
  return {
    intents: [...groups.values()].flatMap(({ way, targets }) =>
      partsOf(targets).map((part) => ({
        request: { ...way, ...request, targets: part.map(({ resource_id }) => ({ resource_id })) },
        targets_resolved: part,
      })),
    ),
  }
}

const partsOf = <T>(all: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / TARGETS) }, (_, i) => all.slice(i * TARGETS, (i + 1) * TARGETS))

/** A later change would be lost: by an operation, or of a value that this one set. */
const refuseMoved = (
  { target_id, wrote, changed_by }: TargetChanged,
  diff: TargetDiff | undefined,
  desired_state: Record<string, unknown>,
): void => {
  const extra = { resource_id: target_id, ...(changed_by !== null && { operation_id: changed_by }) }
  if (changed_by !== null)
    throw refused('changed_since', `"${target_id}" was changed later, by operation ${changed_by}.`, extra)
  const moved =
    wrote && realOf(diff).find(({ path, after }) => !equalJson(readPointer(desired_state, path) ?? null, after))
  if (moved) throw refused('changed_since', `${moved.path} of "${target_id}" has another value now.`, extra)
}

const realOf = (diff: TargetDiff | undefined) => (diff?.fields ?? []).filter(({ noise }) => !noise)

type Way = Pick<IntentBody, 'kind' | 'change' | 'action'>

/** Values that the plan states before the change come first: their procedure also applies the source. */
const wayBack = ({ target_id, wrote, commit_before }: TargetChanged, diff: TargetDiff | undefined): Way => {
  const fields = realOf(diff)
  if (wrote && fields.length > 0) {
    const desired_state_patch = {}
    for (const { path, before } of fields) setAt(desired_state_patch, tokensOf(path), before)
    return { kind: 'change', change: { op: 'update', desired_state_patch } }
  }
  if (!wrote && commit_before !== null)
    return { kind: 'action', action: { action_key: 'apply', parameters: { ref: commit_before } } }
  const detail = wrote
    ? `The plan states no values of "${target_id}" before the change.`
    : `No commit is known that was applied to "${target_id}" before.`
  throw refused('no_state_before', detail, { resource_id: target_id })
}

/** Sets a member of a merge patch; null removes it. */
const setAt = (patch: Record<string, unknown>, [name = '', ...rest]: string[], value: unknown): void => {
  patch[name] = rest.length === 0 ? value : (patch[name] ?? {})
  if (rest.length > 0) setAt(patch[name] as Record<string, unknown>, rest, value)
}
