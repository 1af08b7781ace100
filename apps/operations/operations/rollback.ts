import { SNAPSHOT, type Tx } from '../../../db/client.ts'
import { listChanged, type TargetChanged } from '../../../db/operations/history/changed.ts'
import { getOperation } from '../../../db/operations/operations/read.ts'
import { loadResources, loadTypes } from '../../../db/operations/plans/planning.ts'
import { getIntent } from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { IntentBody } from '../../shared/contracts/operations/intents.ts'
import type { Rollback, RollbackQuery } from '../../shared/contracts/operations/operations.ts'
import { canonicalJson } from '../../shared/data/digest.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { pick, pluck } from '../../shared/data/pick.ts'
import { equalJson, pointerOf, readPointer, tokensOf } from '../../shared/data/pointer.ts'
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

const refuseForeign = ({ resource_id: named = [] }: RollbackQuery, targets: readonly string[]): void => {
  const foreign = named.find((id) => !targets.includes(id))
  if (foreign === undefined) return
  const message = `"${foreign}" is not a target of this operation`
  throw new AppError('validation_error', 'target_not_found', `${message}.`, {
    violations: [{ pointer: '/resource_id', code: 'target_not_found', message }],
  })
}

const rollbackIn = async (tx: Tx, operation_id: string, query: RollbackQuery): Promise<Rollback> => {
  const row = await getOperation(tx, operation_id)
  if (!row) throw notFound('operation', operation_id)
  const { summary } = row
  if (summary.ended_at === null) throw refused('operation_running', 'The operation has not ended.')
  const all = await listChanged(tx, operation_id)
  refuseForeign(query, [...row.detail.resource_ids, ...pluck(all, 'target_id')])
  const changed = all.filter(({ target_id }) => query.resource_id?.includes(target_id) ?? true)
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
    const type = typeOf.get(resource?.type_key ?? '')
    const ended = type?.lifecycle.terminal ?? []
    if (!resource || ended.includes(resource.lifecycle_status))
      throw refused('target_gone', `"${one.target_id}" no longer exists.`, { resource_id: one.target_id })
    const diff = diffs.get(one.target_id)
    if (isBack(one, diff, resource.desired_state)) continue
    if (!query.anyway) refuseMoved(one, diff, resource.desired_state)
    const way = wayBack(one, diff, resource.desired_state, type)
    const key = canonicalJson(way)
    const targets = groups.get(key)?.targets ?? []
    groups.set(key, { way, targets: [...targets, pick(resource, 'resource_id', 'type_key', 'name', 'version')] })
  }
  if (groups.size === 0) throw refused('nothing_changed', 'These targets are back at their state before the operation.')
  const request = {
    title: `Roll back: ${summary.title}`.slice(0, TITLE).toWellFormed(),
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

/** An earlier part of the way back, or another operation, has already brought the state before. */
const isBack = (
  { wrote, commit_before, commit_since }: TargetChanged,
  diff: TargetDiff | undefined,
  desired_state: Record<string, unknown>,
): boolean => {
  if (!wrote) return commit_before !== null && commit_since === commit_before
  const fields = realOf(diff)
  return fields.length > 0 && fields.every(({ path, before }) => holds(desired_state, path, before))
}

const holds = (desired_state: Record<string, unknown>, path: string, value: unknown): boolean =>
  equalJson(readPointer(desired_state, path) ?? null, value)

/** A later change would be lost: by an operation, or of a value that this one set. */
const refuseMoved = (
  { target_id, wrote, changed_by }: TargetChanged,
  diff: TargetDiff | undefined,
  desired_state: Record<string, unknown>,
): void => {
  const extra = { resource_id: target_id, ...(changed_by !== null && { operation_id: changed_by }) }
  if (changed_by !== null)
    throw refused('changed_since', `"${target_id}" was changed later, by operation ${changed_by}.`, extra)
  const moved = wrote && realOf(diff).find(({ path, after }) => !holds(desired_state, path, after))
  if (moved) throw refused('changed_since', `${moved.path} of "${target_id}" has another value now.`, extra)
}

const realOf = (diff: TargetDiff | undefined) => (diff?.fields ?? []).filter(({ noise }) => !noise)

type Way = Pick<IntentBody, 'kind' | 'change' | 'action'>

/** Values that the plan states before the change come first: their procedure also applies the source. */
const wayBack = (
  { target_id, wrote, commit_before }: TargetChanged,
  diff: TargetDiff | undefined,
  desired_state: Record<string, unknown>,
  type: ResourceType | undefined,
): Way => {
  const fields = realOf(diff)
  if (wrote && fields.length > 0) {
    const olds = fields.map(({ path, before }) => ({ tokens: tokensOf(path), before }))
    const desired_state_patch = patchOf(olds, desired_state, type?.desired_state_schema)
    return { kind: 'change', change: { op: 'update', desired_state_patch } }
  }
  const applies = type?.actions?.some(({ action_key }) => action_key === 'apply') ?? false
  if (!wrote && commit_before !== null && applies)
    return { kind: 'action', action: { action_key: 'apply', parameters: { ref: commit_before } } }
  throw refused('no_state_before', unknownOf(target_id, wrote, commit_before), { resource_id: target_id })
}

const unknownOf = (target_id: string, wrote: boolean, commit_before: string | null): string => {
  if (wrote) return `The plan states no values of "${target_id}" before the change.`
  if (commit_before === null) return `No commit is known that was applied to "${target_id}" before.`
  return `The type of "${target_id}" has no action "apply" that could bring back commit ${commit_before}.`
}

type Old = { tokens: string[]; before: unknown }

/** A merge patch to the old values; null removes. It also removes an object that the change added and this would empty. */
const patchOf = (olds: Old[], now: unknown, schema: unknown): Record<string, unknown> => {
  const members = Map.groupBy(olds, ({ tokens }) => tokens[0] ?? '')
  const required = readPointer(schema, '/required')
  const patch = [...members].map(([name, below]): [string, unknown] => {
    const [leaf] = below
    if (leaf?.tokens.length === 1) return [name, leaf.before]
    const [was, inner] = [readPointer(now, pointerOf(name)), readPointer(schema, `/properties${pointerOf(name)}`)]
    const rest = below.map(({ tokens, before }) => ({ tokens: tokens.slice(1), before }))
    const value = patchOf(rest, was, inner)
    const left = mergePatch(was, value) as Record<string, unknown>
    const isNeeded = Array.isArray(required) && required.includes(name)
    return [name, Object.keys(left).length === 0 && !isNeeded ? null : value]
  })
  return Object.fromEntries(patch)
}
