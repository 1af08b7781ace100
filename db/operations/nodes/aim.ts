import type pg from 'pg'
import { AFRESH } from './attempts.ts'

/** The target of an attempt that is about to start, with the version that its plan is based on. */
export type Aim = {
  target_id: string
  version: number
  /** Postgres' time before the catalog is asked. */
  asked_at: string
}

/**
 * The target of an attempt, at the version that its operation has pinned or written itself. `nothing` if no version
 * counts: the node has no target, it ignores drift, the attempt has started, or its claim will be refused anyway.
 * `never` if the whole operation has no target.
 */
const AIM = `
select o.pins = '{}' as aimless, n.target_id, greatest((o.pins ->> n.target_id)::bigint, coalesce(i.version_to, 0)) as version,
  operations.iso(clock_timestamp()) as asked_at,
  coalesce(o.pins ? n.target_id and c.control = 'run' and o.constraints ->> 'on_drift' is distinct from 'ignore'
    and (coalesce(k.phase, 'cancelled') = 'cancelled' or h.afresh), false) as counts
from operations.nodes n
  join operations.operations o using (operation_id)
  join operations.operation_control c using (operation_id)
  left join operations.resource_operation_index i on i.operation_id = $1 and i.resource_id = n.target_id
  left join operations.node_attempts k on k.operation_id = $1 and k.node_id = $2 and k.role = 'run' and k.attempt = $3
  cross join lateral (select ${AFRESH} as afresh from operations.executions e
    where e.operation_id = $1 and e.node_id = $2 and e.role = 'run' and e.attempt = $3) h
where n.operation_id = $1 and n.node_id = $2`

type Row = { aimless: boolean; counts: boolean; target_id: string; version: string; asked_at: string }

export const readAim = async (
  pool: pg.Pool,
  { operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number },
): Promise<Aim | 'nothing' | 'never'> => {
  const { rows } = await pool.query<Row>({ name: 'aim', text: AIM, values: [operation_id, node_id, attempt] })
  const [row] = rows
  if (row?.aimless) return 'never'
  if (!row?.counts) return 'nothing'
  const { target_id, version, asked_at } = row
  return { target_id, version: Number(version), asked_at }
}
