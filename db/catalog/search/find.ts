import { type SQL, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { anyCase } from '../../columns.ts'
import { healthNow } from '../resources/health-now.ts'
import { rowsOf } from '../resources/rows.ts'
import type { ResourceRow } from '../rows.ts'
import { peersOf, wordsOf } from './fold.ts'

export type SearchRow = Pick<
  ResourceRow,
  'rid' | 'resource_id' | 'type_id' | 'path' | 'name' | 'display_name' | 'owner' | 'lifecycle_status' | 'health_status'
> &
  Record<'in_name' | 'in_label' | 'in_relation' | 'in_attribute', boolean> & { score: number }

/** The tables for conditions; Postgres drops those that no condition uses. */
const searchable = sql`catalog.resource r left join catalog.resource_state s on s.rid = r.rid
  left join catalog.resource p on p.rid = r.parent_rid`

/** How many matching resources are ranked; if there are more, those found first. */
const RANKED = 5000

export type Searched = { q: string; where: readonly SQL[]; sees: SQL | undefined; now: Date; limit: number }

/** Lowers the threshold for similar spelling within this transaction: the default of 0.6 misses a dropped letter. */
export const setSpelling = (tx: Tx): Promise<unknown> =>
  tx.execute(sql`select set_config('pg_trgm.word_similarity_threshold', '0.4', true)`)

/**
 * Resources that contain all words of `q`, best first. `where` is over r (resource), s (its state) and p (its parent).
 * With `spelling`: those with similar names instead, in a transaction after `setSpelling`. `sees`, over n, limits the
 * related resources whose names count; they must not appear by a match, a mark or a score either.
 */
export const searchResources = (
  db: Queryable,
  { q, where, sees, now, limit, by }: Searched & { by: 'words' | 'spelling' },
): Promise<SearchRow[]> => {
  const conditions = sql.join([...where], sql` and `)
  const lower_q = q.toLowerCase()
  const name = sql`lower(r.name${anyCase(q)})`
  const query = (weight: '' | 'A' | 'B' | 'C' | 'D' | 'ABD', operator: '&' | '|'): SQL =>
    sql`(select string_agg(w || ':*' || ${weight}, ${` ${operator} `})::tsquery from asked)`
  const own = sees ? 'ABD' : ''
  const isRelated = (rid: SQL, asked: SQL): SQL =>
    sql`exists (select from ${peersOf(rid)} o join catalog.resource n on n.rid = o.peer where ${sees}
      and to_tsvector('simple', ${wordsOf(sql`concat_ws(' ', n.resource_id, n.name)`)}) @@ ${asked})`
  const related = sees
    ? sql`not exists (select from asked where not d.document @@ (w || ':*ABD')::tsquery
        and not ${isRelated(sql`r.rid`, sql`(w || ':*')::tsquery`)})`
    : sql`true`
  const found =
    by === 'words'
      ? sql`select r.rid from ${searchable} join catalog.search d on d.rid = r.rid
            where d.document @@ ${query('', '&')} and ${conditions} and ${related} limit ${sql.raw(String(RANKED))}`
      : sql`select r.rid from ${searchable} join catalog.search d on d.rid = r.rid
            where ${lower_q} <% d.names and ${conditions} limit ${sql.raw(String(RANKED))}`
  return rowsOf(
    db,
    sql`with asked as materialized (select w from regexp_split_to_table(${wordsOf(sql`${q}`)}, ' ') w where w <> 'x'),
          found as (select rid from (${found}) f
            union select r.rid from ${searchable} where r.resource_id = ${q} and ${conditions}
            union (select r.rid from ${searchable} where r.name = ${q} and ${conditions} limit 100))
        select r.rid, r.resource_id, r.type_id, r.path::text as path, r.name, r.display_name, r.owner,
          s.lifecycle_status, ${healthNow(now)} as health_status,
          coalesce(d.document @@ ${query('A', '|')}, false) as in_name,
          coalesce(d.document @@ ${query('B', '|')}, false) as in_label,
          coalesce(${sees ? isRelated(sql`f.rid`, query('', '|')) : sql`d.document @@ ${query('C', '|')}`}, false) as in_relation,
          coalesce(d.document @@ ${query('D', '|')}, false) as in_attribute,
          ((case when r.resource_id = ${q} or ${name} = ${lower_q} then 100
                 when starts_with(r.resource_id, ${lower_q}) or starts_with(${name}, ${lower_q}) then 10 else 0 end)
            + coalesce(ts_rank_cd(d.document, ${query(own, by === 'words' ? '&' : '|')}), 0)
            + word_similarity(${lower_q}, coalesce(d.names, '')))::float8 as score
        from found f join catalog.resource r on r.rid = f.rid join catalog.resource_state s on s.rid = r.rid
          left join catalog.search d on d.rid = f.rid
        order by score desc, r.resource_id limit ${limit}`,
  )
}
