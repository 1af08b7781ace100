import { heldOf } from '../../../db/catalog/held/rows.ts'
import { saveAudit, saveEvidence, saveOperationRef, saveRevision } from '../../../db/catalog/resources/commands.ts'
import { getResourcesByRid, updateResource, updateState } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { pluck } from '../../shared/data/pick.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { AppError } from '../../shared/errors.ts'
import { applyCapabilities, type ProviderEvent } from '../capabilities/declare.ts'
import { capabilityEventsOf, tellClaims } from '../capabilities/tell.ts'
import type { EdgePlan } from '../command/edges.ts'
import { type Cause, partsOf, resourceEventsOf, tell } from '../command/outbox.ts'
import type { CatalogDeps } from '../deps.ts'
import { isTerminal } from '../document/lifecycle.ts'
import type { JsonObject } from '../document/pointers.ts'
import { settleHealth } from '../health/observe.ts'
import { applyEdges, checkPeers, type Ignored, type Sees } from '../relationships/edges.ts'
import { checkCardinality } from '../relationships/limits.ts'
import { checkTransition, fittingChange, refuseTerminal } from '../rules/change.ts'
import { NOTES } from '../rules/notes.ts'
import { closeAllEdges } from './retire.ts'
import { type Change, columnsOf, type Next, recordOf, referencesOf, type Version } from './versions.ts'

/** The data locked for the change: the current row, its edges, and all resources that would end with it. */
export type Locked = {
  row: ResourceRow
  plan: EdgePlan
  leaving: string[]
  /** Others that the transaction ends by changes of their own. */
  together?: readonly string[]
  sees: Sees
}

export type Written = {
  row: ResourceRow
  previous_version: number
  applied: boolean
  changed_paths: string[]
  ignored: Ignored[]
}

/**
 * Applies one change to one locked resource (catalog.md 8, steps 8 to 11). Validates the result group by group, then
 * writes state, edges and capabilities, and one version with its revision, audit row and event. If nothing changed,
 * writes only the reference to the operation.
 */
export const applyChange = async (
  tx: Tx,
  deps: CatalogDeps,
  locked: Locked,
  change: Change,
  cause: Cause,
): Promise<Written> => {
  const { row, plan, sees } = locked
  const { types } = deps.registry
  const { type, newest, lifecycle_status, desired_state, observed_state } = validate(deps, locked, change, cause)
  const ends = isTerminal(newest.lifecycle, lifecycle_status) && row.is_open
  // Its requirements are those of the state that the change leaves.
  const place = { types, row: { ...row, desired_state, type_version: type.version }, type }
  await checkPeers(tx, place, plan, sees)
  const edges = await applyEdges(tx, deps, place, plan, cause)
  const withdrawn: ProviderEvent[] = []
  if (ends) {
    const ended = await endWith(tx, deps, locked, row, cause)
    edges.events.push(...ended.edges)
    withdrawn.push(...ended.providers)
  } else {
    const entered = lifecycle_status === 'active' && row.lifecycle_status !== 'active'
    checkCardinality(tx, place, { lifecycle_status, entered }, plan, edges.events)
  }
  const capabilities = applyCapabilities(tx, place, ends ? [] : (change.capability_changes ?? []), {
    mode: change.capability_mode ?? 'merge',
    at: cause.at,
    command_id: cause.command_id,
  })
  await versionMoved(tx, deps, edges.moved, cause)
  const claims = await tellClaims(tx, types, edges.claimed, { own_rid: row.rid, cause })
  const providers = [...withdrawn, ...capabilities.events, ...claims]

  const ignored = [...edges.ignored, ...capabilities.ignored]
  const paths = notesChanged(row, change)
  if (lifecycle_status !== row.lifecycle_status) paths.push('/lifecycle_status')
  const states_equal = equalJson(desired_state, row.desired_state) && equalJson(observed_state, row.observed_state)
  if (states_equal && paths.length === 0 && edges.events.length === 0 && providers.length === 0) {
    await keepReferences(tx, row, row.version, cause)
    return { row, previous_version: row.version, applied: false, changed_paths: [], ignored }
  }
  const next = { row, type, change, lifecycle_status, desired_state, observed_state, ends }
  const event = ends ? ('resource.retired' as const) : ('resource.updated' as const)
  const told = { before: row, cause, edges: edges.events, providers, event }
  const after = await writeVersion(tx, deps, await nextRow(tx, next, cause, providers), told)
  return { ...after, previous_version: row.version, applied: true, ignored }
}

/**
 * The states after a change, the type version that they fit, and the newest, whose lifecycle counts. Throws the
 * violations of the first group that fails.
 */
const validate = (
  deps: CatalogDeps,
  { row, plan }: { row: ResourceRow; plan: Pick<EdgePlan, 'resolved'> },
  change: Change,
  cause: Cause,
) => {
  const { types } = deps.registry
  const newest = types.byId(row.type_id)
  if (!newest) throw new AppError('unsupported_resource_type', 'unknown', 'The type of this resource is unknown here.')
  const lifecycle_status = change.lifecycle_status ?? row.lifecycle_status
  const desired_state = change.desired_state ?? (row.desired_state as JsonObject)
  const observed_state = change.observed_state ?? (row.observed_state as JsonObject)
  const touches =
    lifecycle_status !== row.lifecycle_status ||
    plan.resolved.length > 0 ||
    (change.capability_changes?.length ?? 0) > 0 ||
    !equalJson(desired_state, row.desired_state) ||
    !equalJson(observed_state, row.observed_state)
  const refusal = refuseTerminal(newest, row.lifecycle_status, touches)
  if (refusal) throw refusal
  checkTransition(newest, row.lifecycle_status, lifecycle_status, cause.source)
  const type = fittingChange(types, newest, row, { desired_state, observed_state })
  return { type, newest, lifecycle_status, desired_state, observed_state }
}

const notesChanged = (row: ResourceRow, change: Change): string[] =>
  NOTES.filter((name) => change[name] !== undefined && !equalJson(change[name], row[name])).map((name) => `/${name}`)

/** Writes the columns that the next version changes, and returns the resulting row. */
const nextRow = async (tx: Tx, next: Next, cause: Cause, providers: readonly ProviderEvent[]): Promise<ResourceRow> => {
  const { rid } = next.row
  const { fixed, state } = columnsOf(next, cause, partsOf(providers).length)
  if (Object.keys(fixed).length > 0) await updateResource(tx, rid, fixed)
  await updateState(tx, rid, state)
  return heldOf(tx).rowOf(rid)
}

type Told = Version & {
  /** `undefined` for a new resource. */
  before: ResourceRow | undefined
  providers: ProviderEvent[]
  event: 'resource.created' | 'resource.updated' | 'resource.retired'
}

/** Writes one version of a row: its revision, references, audit row and events. */
export const writeVersion = async (
  tx: Tx,
  deps: CatalogDeps,
  row: ResourceRow,
  { before, cause, edges, providers, event }: Told,
): Promise<{ row: ResourceRow; changed_paths: string[] }> => {
  const { document, old, changed_paths, revision, audit } = recordOf(deps, row, before, { cause, edges, providers })
  await saveRevision(tx, revision)
  await keepReferences(tx, row, before?.version ?? 0, cause)
  await saveAudit(tx, audit)
  const follows = old !== undefined && old.lifecycle_status !== document.lifecycle_status
  // Health follows the lifecycle, and its event precedes that of the version.
  const now = follows ? await settleHealth(tx, deps, row, cause, 'lifecycle') : row
  if (providers.length > 0) {
    const subject = { ...document, capability_revision: row.capability_revision }
    await tell(tx, ...capabilityEventsOf(cause, subject, row.version - 1, providers))
  }
  const change = { type: event, changed_paths, relationship_changes: edges }
  await tell(tx, ...resourceEventsOf(cause, now, document, change))
  return { row: now, changed_paths }
}

/** Stores the reference to the operation and its evidence, also for commands that changed nothing. */
export const keepReferences = async (tx: Tx, row: ResourceRow, version_from: number, cause: Cause): Promise<void> => {
  const { operation, evidence } = referencesOf(row, version_from, cause)
  const [first, ...others] = evidence
  if (operation) await saveOperationRef(tx, operation)
  if (first) await saveEvidence(tx, [first, ...others])
}

/** Writes a version of each resource that another's command moved to another parent, from the rows as they were. */
export const versionMoved = async (
  tx: Tx,
  deps: CatalogDeps,
  moved: readonly ResourceRow[],
  cause: Cause,
): Promise<void> => {
  const { types } = deps.registry
  const rows = await getResourcesByRid(tx, pluck(moved, 'rid'))
  for (const before of moved) {
    const row = rows.find(({ rid }) => rid === before.rid)
    const type = row && (types.version(row.type_id, row.type_version) ?? types.byId(row.type_id))
    if (!row || !type) throw new Error(`resource ${before.resource_id} moved to where it cannot be read`)
    const states = { desired_state: row.desired_state as JsonObject, observed_state: row.observed_state as JsonObject }
    const next = { row, type, change: {}, lifecycle_status: row.lifecycle_status, ...states, ends: false }
    const told = { before, cause, edges: [], providers: [], event: 'resource.updated' as const }
    await writeVersion(tx, deps, await nextRow(tx, next, cause, []), told)
  }
}

/** Closes an ending resource's edges and ends everything that cascades from it, each with its own version and event. */
const endWith = async (tx: Tx, deps: CatalogDeps, locked: Locked, row: ResourceRow, cause: Cause) => {
  const { types } = deps.registry
  const { leaving, together = [], sees } = locked
  const all = new Set([...leaving, ...together])
  const close = (member: ResourceRow) => closeAllEdges(tx, types, member, { leaving: all, sees, cause })
  const ended = await close(row)
  for (const rid of leaving.slice(1)) {
    const [member] = await getResourcesByRid(tx, [rid])
    const type = member && types.byId(member.type_id)
    if (!member?.is_open || !type) continue
    const gone = await close(member)
    const ended = await nextRow(
      tx,
      {
        row: member,
        type: types.version(member.type_id, member.type_version) ?? type,
        change: {},
        lifecycle_status: type.lifecycle.terminal[0] ?? 'retired',
        desired_state: member.desired_state as JsonObject,
        observed_state: member.observed_state as JsonObject,
        ends: true,
      },
      cause,
      gone.providers,
    )
    await writeVersion(tx, deps, ended, { before: member, cause, ...gone, event: 'resource.retired' })
  }
  return ended
}
