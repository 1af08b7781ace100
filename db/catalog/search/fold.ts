import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { array, rowsOf } from '../resources/rows.ts'

/** How far search has followed the log, and the last row of its initial load so far (null: complete). */
export type SearchPosition = { pub_seq: string; filling_after: string | null }

const TEXT_LIMIT = 60_000
const PEERS = 50

/** A text's words: lower case, split at every character but letters and digits, so any part of an id is found. */
export const wordsOf = (expression: SQL): SQL =>
  sql`regexp_replace(lower(left(${expression}, ${sql.raw(String(TEXT_LIMIT))})), '[^[:alnum:]]+', ' ', 'g')`
const weighted = (expression: SQL, weight: 'A' | 'B' | 'C' | 'D'): SQL =>
  sql`setweight(to_tsvector('simple', ${wordsOf(expression)}), ${sql.raw(`'${weight}'`)})`
/** The texts and numbers in a JSON value, without its member names. */
const valuesOf = (column: SQL): SQL => sql`coalesce((select string_agg(v #>> '{}', ' ')
  from jsonb_path_query(${column}, 'strict $.** ? (@.type() == "string" || @.type() == "number")') v), '')`

/** Writes the search index of these resources: A names, B labels, C relations, D attributes. */
export const foldSearch = async (tx: Tx, rids: readonly string[]): Promise<void> => {
  if (rids.length === 0) return
  const names = sql`lower(concat_ws(' ', r.resource_id, nullif(r.name, r.resource_id), nullif(r.display_name, r.name)))`
  await tx.execute(sql`insert into catalog.search (rid, names, document)
    select r.rid, ${names},
      ${weighted(names, 'A')}
        || ${weighted(sql`concat_ws(' ', r.labels::text, r.owner, t.type_key)`, 'B')}
        || ${weighted(sql`coalesce(e.peers, '')`, 'C')}
        || ${weighted(sql`concat_ws(' ', ${valuesOf(sql`r.desired_state`)}, ${valuesOf(sql`s.observed_state`)}, r.annotations::text)`, 'D')}
    from catalog.resource r join catalog.resource_state s on s.rid = r.rid
      join lateral (select type_key from catalog.type where id = r.type_id limit 1) t on true
      left join lateral (select string_agg(concat_ws(' ', p.resource_id, nullif(p.name, p.resource_id)), ' ') as peers
        from (select dst from catalog.relationship where src = r.rid order by rel_no limit ${sql.raw(String(PEERS))}) o
          join catalog.resource p on p.rid = o.dst) e on true
    where r.rid = any(${array(rids, 'bigint')})
    on conflict (rid) do update set names = excluded.names, document = excluded.document
      where search.document <> excluded.document or search.names <> excluded.names`)
}

export const readSearchPosition = async (db: Queryable): Promise<SearchPosition | undefined> =>
  first(
    await rowsOf<SearchPosition>(
      db,
      sql`select pub_seq::text as pub_seq, filling_after::text as filling_after from catalog.search_position`,
    ),
  )

export const writeSearchPosition = async (tx: Tx, { pub_seq, filling_after }: SearchPosition): Promise<void> => {
  await tx.execute(sql`insert into catalog.search_position (name, pub_seq, filling_after)
    values ('search', ${pub_seq}, ${filling_after})
    on conflict (name) do update set pub_seq = excluded.pub_seq, filling_after = excluded.filling_after`)
}

/** The next resources by row number, for an initial load. */
export const ridsAfter = async (db: Queryable, after: string, limit: number): Promise<string[]> =>
  (
    await rowsOf<{ rid: string }>(
      db,
      sql`select rid from catalog.resource where rid > ${after} order by rid limit ${limit}`,
    )
  ).map(({ rid }) => rid)

/** The resources of the next log events, and how far these events reach. */
export const changedAfter = async (
  db: Queryable,
  pub_seq: string,
  limit: number,
): Promise<{ rids: string[]; pub_seq: string; events: number }> => {
  const [row] = await rowsOf<{ rids: string[] | null; pub_seq: string | null; events: number }>(
    db,
    sql`with next as (select pub_seq, payload->>'resource_id' as resource_id, agg_type from catalog.outbox
          where pub_seq > ${pub_seq} order by pub_seq limit ${limit})
        select (select array_agg(r.rid::text) from catalog.resource r
            where r.resource_id in (select resource_id from next where agg_type in ('resource', 'relationships'))) as rids,
          (select max(pub_seq)::text from next) as pub_seq, (select count(*)::int from next) as events`,
  )
  return { rids: row?.rids ?? [], pub_seq: row?.pub_seq ?? pub_seq, events: row?.events ?? 0 }
}
