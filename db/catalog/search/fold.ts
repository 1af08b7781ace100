import { type SQL, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { array, rowOf, rowsOf } from '../resources/rows.ts'

/** How far search has followed the log, and the last row of its initial load so far (null: complete). */
export type SearchPosition = { pub_seq: string; filling_after: string | null }

const TEXT_LIMIT = 60_000
const PEERS = 50

const split = (text: SQL): SQL => sql`'x' || regexp_replace(lower(${text}), '[^[:alnum:]]+', ' x', 'g') collate "C"`

/**
 * A text's words: lower case, split at every character but letters and digits, so any part of an id is found. Each
 * begins with an x, because Postgres would read 9e12f34 as a number and a word. Letters beyond ASCII count in any locale
 * of the database; text without them is split faster.
 */
export const wordsOf = (expression: SQL): SQL =>
  sql`(select case when octet_length(t) = length(t) then ${split(sql`t collate "C"`)}
      else ${split(sql`normalize(t) collate "und-x-icu"`)} end
    from (select left(${expression}, ${sql.raw(String(TEXT_LIMIT))}) as t offset 0) whole)`
const weighted = (expression: SQL, weight: 'A' | 'B' | 'C' | 'D'): SQL =>
  sql`setweight(to_tsvector('simple', ${wordsOf(expression)}), ${sql.raw(`'${weight}'`)})`
/** The texts and numbers in a JSON value, without its member names. */
const valuesOf = (column: SQL): SQL => sql`coalesce((select string_agg(v #>> '{}', ' ')
  from jsonb_path_query(${column}, 'strict $.** ? (@.type() == "string" || @.type() == "number")') v), '')`

/** Edges of these types lead in both directions. */
const symmetric = (column: 'id' | 'type_key'): SQL =>
  sql`(select ${sql.identifier(column)} from catalog.relationship_type where (document->>'symmetric')::boolean)`

/** The resources whose names count for this one: its targets, and both ends of symmetric edges. */
export const peersOf = (rid: SQL): SQL => sql`(
  (select dst as peer from catalog.relationship where src = ${rid} order by rel_no limit ${sql.raw(String(PEERS))})
  union all (select src from catalog.relationship where dst = ${rid} and reltype_id in ${symmetric('id')}
    order by rel_no limit ${sql.raw(String(PEERS))}))`

/** Writes the search index of these resources: A names, B labels, C relations, D attributes. */
export const foldSearch = async (tx: Tx, rids: readonly string[]): Promise<void> => {
  if (rids.length === 0) return
  const names = sql`lower(concat_ws(' ', r.resource_id, nullif(r.name, r.resource_id), nullif(r.display_name, r.name))
    collate "und-x-icu")`
  await tx.execute(sql`insert into catalog.search (rid, names, document)
    select r.rid, ${names},
      ${weighted(names, 'A')}
        || ${weighted(sql`concat_ws(' ', r.labels::text, r.owner, t.type_key)`, 'B')}
        || ${weighted(sql`coalesce(e.peers, '')`, 'C')}
        || ${weighted(sql`concat_ws(' ', ${valuesOf(sql`r.desired_state`)}, ${valuesOf(sql`s.observed_state`)}, r.annotations::text)`, 'D')}
    from catalog.resource r join catalog.resource_state s on s.rid = r.rid
      join lateral (select type_key from catalog.type where id = r.type_id limit 1) t on true
      left join lateral (select string_agg(concat_ws(' ', p.resource_id, nullif(p.name, p.resource_id)), ' ') as peers
        from ${peersOf(sql`r.rid`)} o join catalog.resource p on p.rid = o.peer) e on true
    where r.rid = any(${array(rids, 'bigint')})
    on conflict (rid) do update set names = excluded.names, document = excluded.document
      where search.document <> excluded.document or search.names <> excluded.names`)
}

/** The name of the position: a new one fills the index again, after a change of its words. */
const FORMAT = 'search-3'

export const readSearchPosition = async (db: Queryable): Promise<SearchPosition | undefined> =>
  rowOf(
    db,
    sql`select pub_seq::text as pub_seq, filling_after::text as filling_after from catalog.search_position
        where name = ${FORMAT}`,
  )

export const writeSearchPosition = async (tx: Tx, { pub_seq, filling_after }: SearchPosition): Promise<void> => {
  await tx.execute(sql`insert into catalog.search_position (name, pub_seq, filling_after)
    values (${FORMAT}, ${pub_seq}, ${filling_after})
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

/** The resources of the next log events, also those whose relations they change, and how far these events reach. */
export const changedAfter = async (
  db: Queryable,
  pub_seq: string,
  limit: number,
): Promise<{ rids: string[]; pub_seq: string; events: number }> => {
  const [row] = await rowsOf<{ rids: string[] | null; pub_seq: string | null; events: number }>(
    db,
    sql`with next as (select pub_seq, payload->>'resource_id' as resource_id, agg_type,
            payload->'relationship_changes' as changes
          from catalog.outbox where pub_seq > ${pub_seq} order by pub_seq limit ${limit}),
        edge as (select c->>'from_id' as from_id, c->>'to_id' as to_id, c->>'type_key' as type_key
          from next cross join jsonb_array_elements(changes) c)
        select (select array_agg(r.rid::text) from catalog.resource r where r.resource_id in (
            select resource_id from next where agg_type in ('resource', 'relationships')
            union select from_id from edge
            union select to_id from edge where type_key in ${symmetric('type_key')})) as rids,
          (select max(pub_seq)::text from next) as pub_seq, (select count(*)::int from next) as events`,
  )
  return { rids: row?.rids ?? [], pub_seq: row?.pub_seq ?? pub_seq, events: row?.events ?? 0 }
}
