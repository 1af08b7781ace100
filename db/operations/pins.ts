import { sql } from 'drizzle-orm'
import type { Tx } from '../client.ts'
import { catalog_resources, nodes } from './tables.ts'

/**
 * The versions that targets have now, and the nodes that have not begun whose target has moved since the plan: what a
 * person takes over who resumes in knowledge of the drift. A projection that is behind a pin (of the operation's own
 * write) is no drift. `resource_ids`: only these.
 */
export const repinTargets = async (
  tx: Tx,
  operation_id: string,
  pins: Record<string, number>,
  resource_ids?: readonly string[],
) => {
  const only = resource_ids === undefined ? sql`` : sql`and p.key = any(${sql.param(resource_ids)}::text[])`
  const { rows } = await tx.execute<{ resource_id: string; version: string; node_ids: string[] }>(sql`
    select r.resource_id, r.version::text as version,
           coalesce((select array_agg(n.node_id order by n.ordinal) from ${nodes} n where n.operation_id = ${operation_id}
             and n.target_id = r.resource_id and n.state in ('pending', 'gated', 'ready', 'backoff')), '{}') as node_ids
    from jsonb_each_text(${JSON.stringify(pins)}::jsonb) p join ${catalog_resources} r on r.resource_id = p.key
    where r.version > p.value::bigint ${only}`)
  const fresh = Object.fromEntries(rows.map(({ resource_id, version }) => [resource_id, Number(version)]))
  return { pins: { ...pins, ...fresh }, node_ids: rows.flatMap(({ node_ids }) => node_ids) }
}
