import { and, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Expiring } from '../../../apps/shared/contracts/operations/waiting.ts'
import type { Queryable } from '../../client.ts'
import { iso } from '../expressions.ts'
import { WAITING_FOR_PEOPLE } from '../gates/inbox.ts'
import { gates, intents, operation_control, operations, plans } from '../tables/index.ts'

/**
 * Whether the time of an open operation runs: it stands while it is paused or being cancelled, and until it holds its first
 * leases. After a resume the deadline moves once the engine has taken it.
 */
export const CLOCK_RUNS = sql`not exists (select from ${operation_control} c where c.operation_id = ${operations.operation_id} and c.control <> 'run')
  and not exists (select from operations.operation_commands k where k.operation_id = ${operations.operation_id}
    and (k.kind = 'start' and k.status = 'pending' and k.next_try_at = 'infinity'
      or k.kind = 'resume' and k.status in ('pending', 'sending', 'delivered')))`

/** `visible`, `planned`: operations and intents that the caller may see; `decidable`: gates that they may decide. */
type Scope = { user_id: string; visible: SQL | undefined; planned: SQL | undefined; decidable: SQL; only_mine: boolean }

/** How many one answer shows: those that expire first. */
const SHOWN = 100
const within = (hours: number, at: SQLWrapper): SQL =>
  sql`${at} > clock_timestamp() and ${at} <= clock_timestamp() + make_interval(hours => ${hours}::int)`

/**
 * What is about to expire, the nearest first: operations an hour before their deadline; and, four hours before, ready
 * plans, a person's right to decide a gate by delegation, and gates of their operations that others decide. All other
 * gates are in the list of gates.
 */
export const listExpiring = async (db: Queryable, { user_id, visible, planned, decidable, only_mine }: Scope) => {
  const own = sql`${user_id} in (${operations.requester_id}, ${operations.starter_id})`
  const own_plan = sql`${plans.requester_id} = ${user_id}`
  const until = sql`(d ->> 'until')::timestamptz`
  const if_mine = (mine: SQL) => (only_mine ? mine : undefined)
  const of_gates = and(WAITING_FOR_PEOPLE, visible)
  const { rows } = await db.execute<Expiring>(sql`
    select kind, operation_id, plan_id, gate_id, title, question, ${iso(sql`at`)} as expires_at, follows, mine from (
      select 'operation' as kind, ${operations.operation_id} as operation_id, null::uuid as plan_id, null as gate_id,
        ${operations.title} as title, null as question, ${operations.deadline_at} as at,
        coalesce(${operations.constraints} ->> 'on_deadline', 'graceful') as follows, ${own} as mine
      from ${operations}
      where ${and(sql`${operations.ended_at} is null`, within(1, operations.deadline_at), CLOCK_RUNS, visible, if_mine(own))}
      union all
      select 'plan', null, ${plans.plan_id}, null, ${intents.title}, null, ${plans.expires_at}, null, ${own_plan}
      from ${plans} join ${intents} on ${intents.intent_id} = ${plans.intent_id}
      where ${and(sql`${plans.status} = 'ready'`, within(4, plans.expires_at), planned, if_mine(own_plan))}
      union all
      select 'gate', ${operations.operation_id}, null, ${gates.gate_id}, ${operations.title}, ${gates.question},
        ${gates.deadline_at}, ${gates.policy} ->> 'on_timeout', true
      from ${gates} join ${operations} on ${operations.operation_id} = ${gates.operation_id}
      where ${and(sql`${only_mine}`, of_gates, within(4, gates.deadline_at), own, sql`not (${decidable})`)}
      union all
      select 'delegation', ${operations.operation_id}, null, ${gates.gate_id}, ${operations.title}, ${gates.question},
        ${until}, null, true
      from ${gates} join ${operations} on ${operations.operation_id} = ${gates.operation_id}
        cross join lateral jsonb_array_elements(${gates.delegations}) d
      where ${and(of_gates, sql`d ->> 'user_id' = ${user_id}`, within(4, until), decidable)}
    ) expiring
    order by at, kind, operation_id, plan_id, gate_id
    limit ${SHOWN}`)
  return rows
}
