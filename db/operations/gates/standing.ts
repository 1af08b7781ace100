import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { builtOnce } from '../../rows.ts'
import { gates } from '../tables/index.ts'
import { type GateRow, selectGates } from './rows.ts'

/**
 * SQL: whether the voters of a gate need to be proved again. This holds if people approved it and were last proved more
 * than `seconds` before `now`, or before the decision. An approval by a service, a checking machine, a timeout or the
 * engine depends on no person's rights. With `keep_after_start` a used approval needs no further proof.
 */
export const standingDue = (gate: string, seconds: string, now: string): string =>
  `(${gate}.status in ('approved', 'bypassed') and ${gate}.decided_by ->> 'kind' = 'user'
    and (${gate}.kind <> 'external_check' or ${gate}.status = 'bypassed')
    and not (${gate}.consumed_at is not null and ${gate}.policy ->> 'on_voter_loss' is not distinct from 'keep_after_start')
    and (${gate}.standing_at is null or ${gate}.standing_at < ${gate}.decided_at
      or ${gate}.standing_at < ${now} - make_interval(secs => ${seconds})))`

const [BEFORE, AFTER] = standingDue('operations.gates', ':seconds', 'clock_timestamp()').split(':seconds')
const gatesByIds = builtOnce(['operation_id', 'gate_ids', 'standing_s'], (db, { operation_id, gate_ids, standing_s }) =>
  selectGates(db, {
    due: sql<boolean>`${sql.raw(BEFORE ?? '')}${standing_s}${sql.raw(AFTER ?? '')}`,
    now: sql<string>`operations.iso(clock_timestamp())`,
  })
    .where(and(eq(gates.operation_id, operation_id), sql`${gates.gate_id} = any(${gate_ids}::text[])`))
    .orderBy(asc(gates.gate_id)),
)

/**
 * These gates of one operation, by id; which of them are due to be proved again; and Postgres' time: what identity says
 * afterwards is true as of this time.
 */
export const readStanding = (db: Queryable, operation_id: string, gate_ids: readonly string[], standing_s = 0) =>
  gatesByIds(db, { operation_id, gate_ids, standing_s })
export type StandingRow = Awaited<ReturnType<typeof readStanding>>[number]

/** Records that the voters of these gates were proved as of this time. */
export const markProved = (tx: Tx, operation_id: string, gate_ids: readonly string[], asked_at: string) =>
  tx
    .update(gates)
    .set({ standing_at: asked_at })
    .where(and(eq(gates.operation_id, operation_id), inArray(gates.gate_id, [...gate_ids])))

/**
 * Like `markProved`, without the operation's lock, for passed gates whose votes all count. It applies only while all
 * are as they were read, because a passed round's votes do not change. Returns false if they changed or are changing.
 */
export const markStanding = async (db: Queryable, rows: readonly GateRow[], asked_at: string): Promise<boolean> => {
  const read = rows.map(({ gate: { operation_id, gate_id, status, round, decided_command_id } }) => ({
    operation_id,
    gate_id,
    status,
    round,
    decided_command_id,
  }))
  const { rowCount } = await db.execute(sql`
    with asked as (select * from jsonb_to_recordset(${JSON.stringify(read)}::jsonb)
      as r(operation_id uuid, gate_id text, status text, round int, decided_command_id uuid)),
    same as (select g.operation_id, g.gate_id from asked r join operations.gates g using (operation_id, gate_id, status, round)
      where g.decided_command_id is not distinct from r.decided_command_id for no key update of g skip locked)
    update operations.gates g set standing_at = ${asked_at}::timestamptz
    from same where g.operation_id = same.operation_id and g.gate_id = same.gate_id`)
  return rowCount === rows.length
}

/**
 * Gates of live operations that ask for votes, or have passed unused, and on which these people's approval counts (or
 * anyone's). Used gates are proved when the next node behind them starts.
 */
export const listVotedBy = async (
  db: Queryable,
  user_ids: readonly string[] | 'all',
): Promise<{ operation_id: string; gate_ids: string[] }[]> => {
  const whose = (column: string) =>
    user_ids === 'all' ? sql`true` : sql`${sql.raw(column)} = any(${sql.param(user_ids)}::text[])`
  const { rows } = await db.execute<{ operation_id: string; gate_ids: string[] }>(sql`
    with voted as (
      select v.operation_id, v.gate_id, v.round from operations.votes v where v.decision = 'approve' and not v.voided and (${whose('v.user_id')} or ${whose("v.actor ->> 'in_place_of'")})
      union
      select g.operation_id, g.gate_id, g.round from operations.gates g where g.status = 'bypassed' and ${whose("g.decided_by ->> 'id'")})
    select g.operation_id, array_agg(g.gate_id order by g.gate_id) as gate_ids
    from voted join operations.gates g using (operation_id, gate_id, round) join operations.operation_control c using (operation_id)
    where g.consumed_at is null and g.status in ('waiting', 'approved', 'bypassed') and not c.ended and c.control <> 'cancel'
    group by g.operation_id order by g.operation_id`)
  return rows
}
