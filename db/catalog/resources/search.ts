import { type SQL, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../../client.ts'
import { array, rowsOf } from './rows.ts'

/** How far search has followed the log, and up to which row a first filling has come (none: it is filled). */
export type SearchPosition = { pub_seq: string; filling_after: string | null }

const TEXT_LIMIT = 60_000
const PEERS = 50

/** Words of a text: lower case, apart at everything that is no letter or digit, so that any part of an id is found. */
const wordsOf = (expression: SQL): SQL =>
  sql`regexp_replace(lower(left(${expression}, ${sql.raw(String(TEXT_LIMIT))})), '[^[:alnum:]]+', ' ', 'g')`
const weighted = (expression: SQL, weight: 'A' | 'B' | 'C' | 'D'): SQL =>
  sql`setweight(to_tsvector('simple', ${wordsOf(expression)}), ${sql.raw(`'${weight}'`)})`
/** The texts and numbers of a JSON value, without the names of its members. */
const valuesOf = (column: SQL): SQL => sql`coalesce((select string_agg(v #>> '{}', ' ')
  from jsonb_path_query(${column}, 'strict $.** ? (@.type() == "string" || @.type() == "number")') v), '')`

/** Writes what search knows of these resources: in A names, in B labels, in C relations, in D attributes. */
export const foldSearch = async (tx: Tx, rids: readonly string[]): Promise<void> => {
  if (rids.length === 0) return
  await tx.execute(sql`insert into catalog.search (rid, names, document)
    select r.rid, lower(concat_ws(' ', r.resource_id, nullif(r.name, r.resource_id), nullif(r.display_name, r.name))),
      ${weighted(sql`concat_ws(' ', r.resource_id, r.name, r.display_name)`, 'A')}
        || ${weighted(sql`concat_ws(' ', r.labels::text, r.owner, t.type_key)`, 'B')}
        || ${weighted(sql`coalesce(e.peers, '')`, 'C')}
        || ${weighted(sql`concat_ws(' ', ${valuesOf(sql`r.desired_state`)}, ${valuesOf(sql`s.observed_state`)}, r.annotations::text)`, 'D')}
    from catalog.resource r join catalog.resource_state s on s.rid = r.rid
      join lateral (select type_key from catalog.type where id = r.type_id limit 1) t on true
      left join lateral (select string_agg(p.resource_id || ' ' || p.name, ' ') as peers
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

/** The next resources by row number, for a first filling. */
export const ridsAfter = async (db: Queryable, after: string, limit: number): Promise<string[]> =>
  (
    await rowsOf<{ rid: string }>(
      db,
      sql`select rid from catalog.resource where rid > ${after} order by rid limit ${limit}`,
    )
  ).map(({ rid }) => rid)

/** The resources that the next events of the log are about, and how far these events go. */
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

export type SearchRow = {
  rid: string
  resource_id: string
  type_id: number
  path: string
  name: string
  display_name: string
  owner: string | null
  lifecycle_status: string
  health_status: string
  in_name: boolean
  in_label: boolean
  in_relation: boolean
  in_attribute: boolean
  score: number
}

/** The tables that conditions are over; Postgres leaves out those that none names. */
const searchable = sql`catalog.resource r left join catalog.resource_state s on s.rid = r.rid
  left join catalog.resource p on p.rid = r.parent_rid`

/** So many resources that hold the words are ranked; of more, those found first. */
const RANKED = 5000

/** Lets names count as spelled alike from here on, in this transaction: the default of 0.6 misses a letter that was left out. */
export const setSpelling = (tx: Tx): Promise<unknown> =>
  tx.execute(sql`select set_config('pg_trgm.word_similarity_threshold', '0.4', true)`)

/**
 * Resources that hold all words of `q`, the best first. `where` is over r (resource), s (its state) and p (its parent). By `spelling`: those whose names
 * are alike instead, in a transaction after `setSpelling`.
 */
export const searchResources = (
  db: Queryable,
  { q, where, limit, by }: { q: string; where: readonly SQL[]; limit: number; by: 'words' | 'spelling' },
): Promise<SearchRow[]> => {
  const conditions = sql.join([...where], sql` and `)
  const query = (weight: '' | 'A' | 'B' | 'C' | 'D', operator: '&' | '|'): SQL =>
    sql`(select string_agg(w || ':*' || ${weight}, ${` ${operator} `})::tsquery from asked)`
  const found =
    by === 'words'
      ? sql`select r.rid from ${searchable} join catalog.search d on d.rid = r.rid
            where d.document @@ ${query('', '&')} and ${conditions} limit ${sql.raw(String(RANKED))}`
      : sql`select r.rid from ${searchable} join catalog.search d on d.rid = r.rid
            where lower(${q}) <% d.names and ${conditions} limit ${sql.raw(String(RANKED))}`
  return rowsOf(
    db,
    sql`with asked as materialized (select w from regexp_split_to_table(${wordsOf(sql`${q}`)}, ' ') w where w <> '' limit 12),
          found as (select rid from (${found}) f
            union select r.rid from ${searchable} where r.resource_id = ${q} and ${conditions}
            union (select r.rid from ${searchable} where r.name = ${q} and ${conditions} limit 100))
        select r.rid, r.resource_id, r.type_id, r.path::text as path, r.name, r.display_name, r.owner,
          s.lifecycle_status, s.health_status,
          coalesce(d.document @@ ${query('A', '|')}, false) as in_name,
          coalesce(d.document @@ ${query('B', '|')}, false) as in_label,
          coalesce(d.document @@ ${query('C', '|')}, false) as in_relation,
          coalesce(d.document @@ ${query('D', '|')}, false) as in_attribute,
          ((case when r.resource_id = ${q} or lower(r.name) = lower(${q}) then 100
                 when starts_with(r.resource_id, lower(${q})) or starts_with(lower(r.name), lower(${q})) then 10 else 0 end)
            + coalesce(ts_rank_cd(d.document, ${query('', by === 'words' ? '&' : '|')}), 0)
            + word_similarity(lower(${q}), coalesce(d.names, '')))::float8 as score
        from found f join catalog.resource r on r.rid = f.rid join catalog.resource_state s on s.rid = r.rid
          left join catalog.search d on d.rid = f.rid
        order by score desc, r.resource_id limit ${limit}`,
  )
}
