import { sql } from 'drizzle-orm'
import type { Queryable } from '../../client.ts'
import { array, rowsOf } from '../resources/rows.ts'

/** The maximum number of open edges of one type at one end. */
export const MAX_EDGES = 200_000

/** All resources that end with these along cascading edges, including these. At most `limit`. */
export const cascadeOfAll = async (
  db: Queryable,
  rids: readonly string[],
  reltype_ids: readonly number[],
  limit: number,
): Promise<string[]> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`with recursive gone(rid) as (
          select unnest(${array(rids, 'bigint')})
          union
          -- By the index, whatever the planner expects: few of these edges lead on.
          select e.src from gone cross join lateral (select src from catalog.relationship
            where dst = gone.rid and reltype_id = any(${array(reltype_ids, 'smallint')}) offset 0) e)
        select rid from gone limit ${limit}`,
  )
  return rows.map((row) => row.rid)
}
