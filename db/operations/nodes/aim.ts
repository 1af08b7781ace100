import type pg from 'pg'

/** The target of an attempt that is about to begin, with the version that it was planned on. */
export type Aim = {
  target_id: string
  version: number
  /** The last command that the rows know of. */
  seq: number
  /** It goes on under the number of an attempt that was closed before it took effect. */
  repeated: boolean
}

/**
 * What an attempt aims at, as its operation has it pinned or has written it itself. Nothing where no version counts: the
 * node has no target, its drift is to be ignored, the attempt has begun, or its claim is refused anyway.
 */
const AIM = `
select n.target_id, greatest((o.pins ->> n.target_id)::bigint, coalesce(i.version_to, 0)) as version,
  (select coalesce(max(seq), 0) from operations.operation_commands
   where operation_id = $1 and status not in ('awaiting', 'withdrawn', 'superseded')) as seq,
  k.phase is not null as repeated
from operations.nodes n
  join operations.operations o using (operation_id)
  join operations.operation_control c using (operation_id)
  left join operations.resource_operation_index i on i.operation_id = $1 and i.resource_id = n.target_id
  left join operations.node_attempts k on k.operation_id = $1 and k.node_id = $2 and k.role = 'run' and k.attempt = $3
where n.operation_id = $1 and n.node_id = $2 and o.pins ? n.target_id and c.control = 'run'
  and o.constraints ->> 'on_drift' is distinct from 'ignore'
  and coalesce(k.phase, 'cancelled') = 'cancelled'`

export const readAim = async (
  pool: pg.Pool,
  { operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number },
): Promise<Aim | undefined> => {
  const values = [operation_id, node_id, attempt]
  const { rows } = await pool.query<{ target_id: string; version: string; seq: string; repeated: boolean }>({
    name: 'aim',
    text: AIM,
    values,
  })
  const [row] = rows
  return row && { ...row, version: Number(row.version), seq: Number(row.seq) }
}
