import { ApplicationFailure } from '@temporalio/common'
import type { CatalogWrite } from '../apps/shared/contracts/operations/graph.ts'
import { crashPoint } from '../apps/shared/crash.ts'
import { equalJson, isObject } from '../apps/shared/data/pointer.ts'
import { resolveValue, ValueError } from '../apps/shared/expressions/values.ts'
import { uuidv5 } from '../apps/shared/ids.ts'
import { outputsOf } from '../db/operations/nodes/attempts.ts'
import { getCatalogWrite, saveCatalogWrite } from '../db/operations/operations/catalog.ts'
import type { CatalogResult, Role } from '../workflows/operation/state/events.ts'
import { nodesNamedIn } from './attempts/inputs.ts'
import { type Applied, CatalogAway, type ResourceUpdateCommand } from './catalog.client.ts'
import type { ActivityDeps } from './deps.ts'

export type CatalogInput = { operation_id: string; node_id: string; generation: number; attempt: number }

/** Catalog writes of nodes and their undos (operations.md 7.1): one command, with the same id and key on every try. */
export const createCatalogActivities = (deps: ActivityDeps) => ({
  /** For a node that succeeded. */
  apply_catalog_result: (input: CatalogInput): Promise<CatalogResult> => writeOnce(deps, input, 'run'),
  /** For a node that was undone. */
  restore_catalog: (input: CatalogInput): Promise<CatalogResult> => writeOnce(deps, input, 'undo'),
})

const writeOnce = async (deps: ActivityDeps, input: CatalogInput, role: Role): Promise<CatalogResult> => {
  const write = await getCatalogWrite(deps.db, input, role)
  if (!write) return { status: 'refused', message: 'This node has no catalog write.' }
  const ids = idsOf(input, role)
  if (write.accepted?.command_id === ids.command_id) return { status: 'applied', version: write.accepted.version }
  try {
    const [changes, written] = await changesOf(deps, input, write)
    const result = await apply(deps, commandOf(input, write, ids, changes), role === 'undo' ? written : undefined)
    crashPoint('catalog.before_save')
    if (result.status === 'applied')
      await saveCatalogWrite(deps.db, input, role, { ...ids, resource_id: write.target_id, version: result.version })
    return result.status === 'conflict' ? { status: 'conflict', message: result.message } : result
  } catch (error) {
    if (error instanceof ValueError) return { status: 'refused', message: error.message }
    if (error instanceof CatalogAway) throw ApplicationFailure.retryable(error.message, 'catalog_away')
    throw error
  }
}

type Write = NonNullable<Awaited<ReturnType<typeof getCatalogWrite>>>
type Changes = Record<string, unknown>

const idsOf = ({ operation_id, node_id, attempt }: CatalogInput, role: Role) => {
  const number = role === 'undo' ? `c${attempt}` : attempt
  return {
    command_id: uuidv5(operation_id, `${node_id}:${number}`),
    idempotency_key: `${operation_id}:${node_id}:${number}`,
  }
}

/** Returns the changes to write, and those that the node wrote before. */
const changesOf = async (
  { pool }: ActivityDeps,
  { operation_id }: CatalogInput,
  { catalog, written }: Write,
): Promise<[Changes, Changes]> => {
  const nodes = await outputsOf(pool, operation_id, nodesNamedIn([catalog, written]))
  const resolved = (write: CatalogWrite | null) => resolveValue(write ?? {}, { nodes }) as Changes
  return [resolved(catalog), resolved(written)]
}

const commandOf = (
  { operation_id, node_id }: CatalogInput,
  { target_id, expected_version }: Write,
  ids: ReturnType<typeof idsOf>,
  changes: Changes,
): ResourceUpdateCommand => ({
  ...ids,
  operation_id,
  resource_id: target_id,
  expected_version,
  changes,
  evidence_refs: [{ uri: `/v1/operations/${operation_id}/nodes/${node_id}`, kind: 'node_run', label: node_id }],
})

/** How often an undo looks again at a resource that changes between look and write. */
const LOOKS = 5

/**
 * A version that this operation itself moved (another node with the same target) is no conflict: it tries once more
 * with the current version. A person judges any other change since the plan, unless it does not touch the fields that
 * an undo restores.
 */
const apply = async (
  { catalog }: ActivityDeps,
  command: ResourceUpdateCommand,
  written: Changes | undefined,
): Promise<Applied> => {
  let result = await catalog.apply(command)
  for (let look = 0; result.status === 'conflict'; look++) {
    let expected_version = result.current_version
    if (result.by_operation !== command.operation_id) {
      if (!written || look === LOOKS) return result
      const found = await catalog.documentOf(command.resource_id)
      const moved = found && movedField(command.changes, written, found)
      if (!found || moved !== undefined)
        return { ...result, message: `${moved ?? command.resource_id} was changed by someone else: ${result.message}` }
      expected_version = found.version
    } else if (look > 0 && !written) return result
    result = await catalog.apply(adjusted(command, expected_version))
  }
  return result
}

/** Another command: one whose answer is lost is repeated from its first version, which an id of its own does not refuse. */
const adjusted = (command: ResourceUpdateCommand, expected_version: number): ResourceUpdateCommand => ({
  ...command,
  command_id: uuidv5(command.command_id, `v${expected_version}`),
  idempotency_key: `${command.idempotency_key}:v${expected_version}`,
  expected_version,
})

const STATES = { desired_state_patch: 'desired_state', observed_state_patch: 'observed_state' } as const

/** Returns a field to restore that holds neither the value the node wrote nor the value to restore. */
const movedField = (changes: Changes, written: Changes, found: Changes): string | undefined => {
  const { lifecycle_status: back } = changes
  if (back !== undefined && ![back, written.lifecycle_status].some((known) => known === found.lifecycle_status))
    return 'lifecycle_status'
  for (const [patch, state] of Object.entries(STATES)) {
    const moved = movedMember(changes[patch], written[patch], found[state])
    if (moved !== undefined) return `${state}${moved}`
  }
  return undefined
}

const movedMember = (back: unknown, wrote: unknown, now: unknown): string | undefined => {
  if (!isObject(back)) return undefined
  for (const [key, value] of Object.entries(back)) {
    const member = (of: unknown) => (isObject(of) && Object.hasOwn(of, key) ? of[key] : undefined)
    const [own, has] = [member(wrote), member(now) ?? null]
    if (isObject(value) && isObject(own)) {
      const moved = movedMember(value, own, has)
      if (moved !== undefined) return `/${key}${moved}`
    } else if (![value, own ?? null].some((known) => equalJson(known, has))) return `/${key}`
  }
  return undefined
}
