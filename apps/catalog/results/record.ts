import { readChecks } from '../../../db/catalog/health.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { fingerprintOf } from '../../../db/command/keys.ts'
import type {
  CapabilitiesCommand,
  CommandResult,
  HealthObservation,
  ResourceUpdateCommand,
} from '../../shared/contracts/catalog/commands.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, type Violation, wrongAt } from '../../shared/errors.ts'
import type { ServiceCaller } from '../../shared/service/tokens.ts'
import type { Asked } from '../changes/run.ts'
import type { Command } from '../command/keys.ts'
import { type Cause, recordAudit } from '../command/outbox.ts'
import type { CommandWork } from '../command/run.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { isObject, type JsonObject } from '../document/pointers.ts'
import { observe } from '../health/observe.ts'
import { changeToken, etagOf } from '../read/documents.ts'
import type { Ignored } from '../relationships/edges.ts'
import { lockResource, refuseVersion } from '../resources/lock.ts'
import type { Change } from '../resources/versions.ts'
import { applyChange, keepReferences } from '../resources/write.ts'
import { refuseTerminal, violated } from '../rules/change.ts'

/** The sender of an internal command, and its route. */
export type Sender = { service: ServiceCaller; route: string; request_id: string; path_id: string }
type Internal = ResourceUpdateCommand | CapabilitiesCommand | HealthObservation

const actorOf = ({ service }: Sender) => `svc:${service.name}`

const commandOf = ({ keys }: Uses<'keys'>, body: Internal, sender: Sender): Command => {
  if (body.resource_id !== sender.path_id) {
    throw wrongAt('/resource_id', 'is not the resource of the path', {
      code: 'id_mismatch',
      detail: `The body names ${body.resource_id}, the path ${sender.path_id}.`,
      hint: 'Path and body must name the same resource.',
    })
  }
  const { command_id, idempotency_key, ...content } = body
  return {
    command_id,
    idempotency_key,
    scope: `${actorOf(sender)} ${sender.route}`,
    fingerprint: fingerprintOf(keys.fingerprint, content),
    kind: 'internal',
  }
}

const causeOf = (body: Internal, sender: Sender, at: string): Cause => ({
  actor: actorOf(sender),
  roles: [],
  source: 'operation',
  action: sender.route,
  command_id: body.command_id,
  operation_id: body.operation_id ?? null,
  request_id: sender.request_id,
  reason: null,
  evidence_refs: body.evidence_refs ?? [],
  at,
})

const resultOf = (row: ResourceRow, previous_version: number, applied: boolean, ignored: Ignored[], code?: string) => {
  const body: CommandResult = {
    ...pick(row, 'resource_id', 'version', 'health_revision'),
    previous_version,
    applied,
    ...(code !== undefined && { code }),
    change_token: changeToken(row.resource_id, row.version),
    ignored,
  }
  return { status: 200, headers: { etag: etagOf(row) }, body, about: row.resource_id }
}

/** Records the result of an operation for the resource that it changed (ResourceUpdateCommand of the specification). */
export const operationResult = (deps: CatalogDeps, body: ResourceUpdateCommand, sender: Sender): Asked => {
  refuseEmpty(body)
  const { changes, resource_id } = body
  const work: CommandWork = async (tx, stamp) => {
    const locked = await lockResource(tx, deps.registry.types, resource_id, { ...changes, read: 'all' })
    const conflict = refuseVersion(locked.row, [body.expected_version])
    if (conflict) throw conflict
    if (changes.health_status !== undefined) refuseEnded(deps, locked.row)
    const cause = causeOf(body, sender, stamp(locked.row))
    const written = await applyChange(tx, deps, locked, changeOf(locked.row, changes), cause)
    let { row, applied } = written
    if (changes.health_status !== undefined) {
      const observed = await observeResult(tx, deps, row, changes.health_status, cause)
      applied = applied || observed !== undefined
      row = observed ?? row
    }
    return resultOf(row, written.previous_version, applied, written.ignored, applied ? undefined : 'no_change')
  }
  const { relationship_changes: edges = [], lifecycle_status } = changes
  return { command: commandOf(deps, body, sender), wish: { resource_id, edges, lifecycle_status }, work }
}

/** A resource that has ended has no more health; the result that ends it may still report one. */
const refuseEnded = ({ registry }: Uses<'registry'>, { type_id, lifecycle_status }: ResourceRow): void => {
  const type = registry.types.byId(type_id)
  const refusal = type && refuseTerminal(type, lifecycle_status, true)
  if (refusal) throw refusal
}

const refuseEmpty = ({ changes, evidence_refs }: ResourceUpdateCommand) => {
  if (Object.keys(changes).length > 0 || (evidence_refs?.length ?? 0) > 0) return
  throw new AppError('validation_error', 'schema_violation', 'The command contains neither a change nor evidence.', {
    violations: [
      { pointer: '/changes', code: 'minProperties', message: 'may be empty only together with evidence_refs' },
    ],
  })
}

const changeOf = (row: ResourceRow, changes: ResourceUpdateCommand['changes']): Change => {
  const { lifecycle_status, desired_state_patch, observed_state_patch, provided_capability_changes } = changes
  return {
    ...(lifecycle_status !== undefined && { lifecycle_status }),
    ...(desired_state_patch !== undefined && { desired_state: patched(row.desired_state, desired_state_patch) }),
    ...(observed_state_patch !== undefined && { observed_state: patched(row.observed_state, observed_state_patch) }),
    ...(provided_capability_changes !== undefined && { capability_changes: provided_capability_changes }),
  }
}

const patched = (state: Record<string, unknown>, patch: Record<string, unknown>): JsonObject => {
  const result = mergePatch(state, patch)
  return isObject(result) ? result : {}
}

/** A result's health_status is an observation under a check of its own; it moves health_revision, never the version. */
const observeResult = (
  tx: Tx,
  deps: CatalogDeps,
  row: ResourceRow,
  status: HealthObservation['status'],
  cause: Cause,
) =>
  observe(
    tx,
    deps,
    row,
    { source: 'command', check_key: 'operation', status, observed_at: cause.at, ttl_s: undefined },
    cause,
  )

/** Records what a resource reports that it provides. */
export const providedCapabilities = (deps: CatalogDeps, body: CapabilitiesCommand, sender: Sender): Asked => ({
  command: commandOf(deps, body, sender),
  wish: { resource_id: body.resource_id, edges: [] },
  work: async (tx, stamp) => {
    const locked = await lockResource(tx, deps.registry.types, body.resource_id, { read: 'all' })
    const conflict = refuseVersion(locked.row, [body.expected_version])
    if (conflict) throw conflict
    const change: Change = {
      capability_changes: body.provided_capability_changes,
      capability_mode: body.mode ?? 'merge',
    }
    const written = await applyChange(tx, deps, locked, change, causeOf(body, sender, stamp(locked.row)))
    const code = written.applied ? undefined : 'no_change'
    return resultOf(written.row, written.previous_version, written.applied, written.ignored, code)
  },
})

const MAX_AHEAD_MS = 60_000
const MAX_CHECKS = 200
const MAX_SUMMARY_BYTES = 1024
const MAX_ATTRIBUTES_BYTES = 8192

/** The bounds of catalog.md 6: every read of a health reads all its checks, and the history keeps each observation. */
const refuseExcess = async (tx: Tx, { rid }: ResourceRow, body: HealthObservation): Promise<void> => {
  const { source, check_key, summary = '', attributes = {} } = body
  const large = (member: string, limit: string): Violation[] => [
    { pointer: `/${member}`, code: 'schema_violation', message: `is larger than ${limit}` },
  ]
  if (Buffer.byteLength(summary) > MAX_SUMMARY_BYTES) throw violated(large('summary', '1 KiB'))
  if (Buffer.byteLength(JSON.stringify(attributes)) > MAX_ATTRIBUTES_BYTES) throw violated(large('attributes', '8 KiB'))
  const checks = await readChecks(tx, rid)
  if (checks.length < MAX_CHECKS || checks.some((one) => one.source === source && one.check_key === check_key)) return
  throw new AppError('validation_error', 'too_many_checks', `A resource has at most ${MAX_CHECKS} health checks.`)
}

/** Records one observation of a resource's health; an observation older than the known one changes nothing. */
export const healthObservation = (deps: CatalogDeps, body: HealthObservation, sender: Sender): Asked => {
  const observed_at = new Date(body.observed_at)
  if (observed_at.getTime() > deps.clock.now().getTime() + MAX_AHEAD_MS) {
    throw wrongAt('/observed_at', 'is in the future', {
      code: 'observed_in_future',
      detail: 'observed_at is more than 60 s ahead of the catalog’s clock.',
      hint: 'Check the clock of the sender.',
    })
  }
  const work: CommandWork = async (tx, stamp) => {
    const { row } = await lockResource(tx, deps.registry.types, body.resource_id, { read: 'all' })
    const conflict = body.expected_version === undefined ? undefined : refuseVersion(row, [body.expected_version])
    if (conflict) throw conflict
    refuseEnded(deps, row)
    await refuseExcess(tx, row, body)
    const cause = causeOf(body, sender, stamp(row))
    const { source, check_key, status, ttl_s, summary, attributes } = body
    const observation = { source, check_key, status, ttl_s, summary, attributes, observed_at: body.observed_at }
    const observed = await observe(tx, deps, row, observation, cause)
    const after = observed ?? row
    await keepReferences(tx, row, row.version, cause)
    if (after.health_revision !== row.health_revision) {
      const details = { status: after.health_status, health_revision: after.health_revision }
      await recordAudit(tx, deps, cause, { object: `resource:${row.resource_id}`, outcome: 'applied', details })
    }
    return resultOf(after, row.version, observed !== undefined, [], observed ? undefined : 'superseded')
  }
  const wish = { resource_id: body.resource_id, edges: [] }
  return { command: commandOf(deps, body, sender), wish, work }
}
