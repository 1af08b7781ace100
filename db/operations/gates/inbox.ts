import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import { gates, operations, votes } from '../tables/index.ts'
import { selectGates, textArray } from './rows.ts'

/** Sort key of the inbox as text: by deadline (none last), then oldest. */
const DEADLINE_KEY = sql<string>`coalesce(operations.iso(${gates.deadline_at}), '9999')`
const SINCE_KEY = sql<string>`coalesce(operations.iso(${gates.waiting_since}), '9999')`
const inboxKey = sql`(${DEADLINE_KEY}, ${SINCE_KEY}, ${gates.operation_id}::text, ${gates.gate_id})`

/** Waiting gates that people decide, by deadline. */
export const listInbox = (
  db: Queryable,
  { where, after, limit }: { where: SQL | undefined; after: (string | null)[] | undefined; limit: number },
) =>
  selectGates(db, {
    key: sql<string[]>`array[${DEADLINE_KEY}, ${SINCE_KEY}, ${gates.operation_id}::text, ${gates.gate_id}]`,
  })
    .where(
      and(WAITING_FOR_PEOPLE, where, after && sql`${inboxKey} > (${after[0]}, ${after[1]}, ${after[2]}, ${after[3]})`),
    )
    .orderBy(DEADLINE_KEY, SINCE_KEY, sql`${gates.operation_id}::text`, asc(gates.gate_id))
    .limit(limit)

export const WAITING_FOR_PEOPLE = sql`${gates.status} = 'waiting' and ${gates.kind} <> 'external_check'`

/** How many gates matching `where` wait for people; `mine` counts those that one person may decide. */
export const countInbox = async (db: Queryable, where: SQL | undefined, mine: SQL) => {
  const [row] = await db
    .select({ all: sql<number>`count(*)::int`, mine: sql<number>`(count(*) filter (where ${mine}))::int` })
    .from(gates)
    .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
    .where(and(WAITING_FOR_PEOPLE, where))
  return row ?? { all: 0, mine: 0 }
}

/** Gates on which this person could vote by group, four eyes and votes so far (the caller adds the scope). */
export const votableBy = (user_id: string, groups: readonly string[]): SQL => sql`
  (jsonb_array_length(${gates.policy} -> 'groups') = 0
    or exists (select 1 from jsonb_array_elements(${gates.policy} -> 'groups') g where g ->> 'group' = any(${textArray(groups)}))
    or exists (select 1 from jsonb_array_elements(${gates.policy} -> 'escalation') with ordinality e(step, n)
               where e.n <= ${gates.escalation_level} and e.step -> 'add_groups' ?| ${textArray(groups)})
    or exists (select 1 from jsonb_array_elements(${gates.delegations}) d
               where d ->> 'user_id' = ${user_id} and (d ->> 'until')::timestamptz > clock_timestamp()))
  and not ((${gates.policy} ->> 'four_eyes')::boolean and ${user_id} = any(case when ${gates.kind} = 'intervention'
    then array[${gates.subject} #>> '{intervention,author,id}'] || array(select jsonb_array_elements_text(coalesce(${gates.subject} #> '{intervention,author,behind}', '[]'))) else ${operations.involved} end))
  and not exists (select 1 from ${votes} v where v.operation_id = ${gates.operation_id} and v.gate_id = ${gates.gate_id}
                  and v.round = ${gates.round} and v.user_id = ${user_id} and not v.voided)`
