import { sql } from 'drizzle-orm'
import type { CatalogWrite } from '../../../apps/shared/contracts/operations/graph.ts'
import type { Db, Queryable } from '../../client.ts'

type Ref = { operation_id: string; node_id: string; generation: number }
type Role = 'run' | 'undo'

/** How a node records a write that the catalog has accepted. */
const ACCEPTED = { run: 'applied', undo: 'restored' } as const
const REACHED = { run: 'succeeded', undo: 'compensated' } as const

/**
 * The catalog write of a node or its undo, and the version to which it applies; `undefined` if it writes nothing or was
 * reset. `written`: what the node itself had written there.
 */
export const getCatalogWrite = async (db: Queryable, { operation_id, node_id, generation }: Ref, role: Role) => {
  const write = role === 'run' ? sql`n.spec -> 'catalog'` : sql`n.spec #> '{compensate,catalog}'`
  const { rows } = await db.execute<{
    catalog: CatalogWrite
    written: CatalogWrite | null
    target_id: string
    expected_version: string
    accepted: { command_id: string; version: number } | null
  }>(sql`
    select ${write} as catalog, n.spec -> 'catalog' as written, n.target_id,
      coalesce((o.pins ->> n.target_id)::bigint, 0) as expected_version,
      case when n.catalog ->> 'status' = ${ACCEPTED[role]} then n.catalog end as accepted
    from operations.nodes n join operations.operations o using (operation_id)
    where n.operation_id = ${operation_id} and n.node_id = ${node_id} and n.generation = ${generation}
      and ${write} is not null and n.target_id is not null`)
  const [row] = rows
  return row && { ...row, expected_version: Number(row.expected_version) }
}

/**
 * Records that the catalog accepted a write: the node succeeded or is undone; its target's pin is the new version. In an
 * operation that has ended meanwhile, the node stays as its history says.
 */
export const saveCatalogWrite = (
  db: Db,
  { operation_id, node_id, generation }: Ref,
  role: Role,
  { command_id, resource_id, version }: { command_id: string; resource_id: string; version: number },
): Promise<void> =>
  db.transaction(async (tx) => {
    const catalog = JSON.stringify({ command_id, status: ACCEPTED[role], version })
    await tx.execute(sql`
      update operations.operations set pins = pins || jsonb_build_object(${resource_id}::text, ${version}::bigint)
      where operation_id = ${operation_id} and coalesce((pins ->> ${resource_id})::bigint, 0) < ${version}`)
    await tx.execute(sql`
      update operations.nodes n set catalog = ${catalog}::jsonb, updated_at = clock_timestamp(),
        state = case when c.ended then n.state else ${REACHED[role]} end,
        error = case when c.ended then n.error end,
        ended_at = case when c.ended then n.ended_at else clock_timestamp() end
      from operations.operation_control c where c.operation_id = n.operation_id
        and n.operation_id = ${operation_id} and n.node_id = ${node_id} and n.generation = ${generation}`)
    await tx.execute(sql`
      update operations.resource_operation_index set version_to = ${version}, last_command_id = ${command_id}
      where operation_id = ${operation_id} and resource_id = ${resource_id}`)
  })
