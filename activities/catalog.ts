import { ApplicationFailure } from '@temporalio/common'
import { resolveValue, ValueError } from '../apps/shared/expressions/values.ts'
import { uuidv5 } from '../apps/shared/ids.ts'
import { outputsOf } from '../db/operations/nodes/attempts.ts'
import { getCatalogWrite, saveCatalogWrite } from '../db/operations/operations/catalog.ts'
import type { CatalogResult } from '../workflows/operation/state/events.ts'
import { nodesNamedIn } from './attempts/inputs.ts'
import { type Applied, CatalogAway, type ResourceUpdateCommand } from './catalog.client.ts'
import type { ActivityDeps } from './deps.ts'

export type CatalogInput = { operation_id: string; node_id: string; generation: number; attempt: number }

/** The catalog write of a node that succeeded (operations.md 7.1): one command, the same id and key on every try. */
export const createCatalogActivities = (deps: ActivityDeps) => ({
  apply_catalog_result: async (input: CatalogInput): Promise<CatalogResult> => {
    const write = await getCatalogWrite(deps.db, input)
    if (!write) return { status: 'refused', message: 'This node has no catalog write.' }
    if (write.applied_version !== null) return { status: 'applied', version: write.applied_version }
    let command: ResourceUpdateCommand
    try {
      command = await commandOf(deps, input, write)
    } catch (error) {
      if (error instanceof ValueError) return { status: 'refused', message: error.message }
      throw error
    }
    const result = await apply(deps, command)
    if (result.status === 'applied') await saveCatalogWrite(deps.db, input, { ...command, version: result.version })
    return result.status === 'conflict' ? { status: 'conflict', message: result.message } : result
  },
})

type Write = NonNullable<Awaited<ReturnType<typeof getCatalogWrite>>>

const commandOf = async (
  { pool }: ActivityDeps,
  { operation_id, node_id, attempt }: CatalogInput,
  { catalog, target_id, expected_version }: Write,
): Promise<ResourceUpdateCommand> => {
  const nodes = await outputsOf(pool, operation_id, nodesNamedIn(catalog))
  return {
    command_id: uuidv5(operation_id, `${node_id}:${attempt}`),
    idempotency_key: `${operation_id}:${node_id}:${attempt}`,
    operation_id,
    resource_id: target_id,
    expected_version,
    changes: resolveValue(catalog, { nodes }) as Record<string, unknown>,
    evidence_refs: [{ uri: `/v1/operations/${operation_id}/nodes/${node_id}`, kind: 'node_run', label: node_id }],
  }
}

/**
 * A version that this operation itself moved on (another node of the same target) is no conflict: once more with the
 * current one. Any other change since the plan is for a person to judge.
 */
const apply = async ({ catalog }: ActivityDeps, command: ResourceUpdateCommand): Promise<Applied> => {
  try {
    const first = await catalog.apply(command)
    if (first.status !== 'conflict' || first.by_operation !== command.operation_id) return first
    return await catalog.apply({ ...command, expected_version: first.current_version })
  } catch (error) {
    if (error instanceof CatalogAway) throw ApplicationFailure.retryable(error.message, 'catalog_away')
    throw error
  }
}
