import { type SQL, sql } from 'drizzle-orm'
import { pluck } from '../../../apps/shared/data/pick.ts'
import { first, type Queryable } from '../../client.ts'
import type { ResourceRow } from '../rows.ts'
import { hasHealth, healthNow } from './health-now.ts'
import { isBelow, ridsOf } from './paths.ts'
import { array, leanColumns, resourceColumns, resourceTables, rowsOf } from './rows.ts'

/** What a caller may reach: everything, or the union of these limits (the app's access.ts). */
export type RowAccess = 'all' | { place_ids: string[]; type_ids: number[] | null }[]

/**
 * The single condition that scopes reads (catalog.md 12), over a resource under the given alias. The resource must be
 * below all places of a limit, or outside any topology, and of one of the limit's types.
 */
export const accessSql = (access: RowAccess, topology_type_ids: readonly number[], alias: 'r' | 'n' = 'r'): SQL => {
  if (access === 'all') return sql`true`
  const row =
    alias === 'r' ? { path: sql`r.path`, type_id: sql`r.type_id` } : { path: sql`n.path`, type_id: sql`n.type_id` }
  const limits = access.map(({ place_ids, type_ids }) => {
    const typed = type_ids === null ? sql`true` : sql`${row.type_id} = any(${array(type_ids, 'smallint')})`
    if (place_ids.length === 0) return typed
    const below = place_ids.map(
      (id) =>
        sql`exists (select 1 from catalog.resource t where t.resource_id = ${id} and ${isBelow(row.path, sql`t.path`)})`,
    )
    const nowhere = sql`not exists (select 1 from catalog.resource t
      where t.rid = any(${ridsOf(row.path)}) and t.type_id = any(${array(topology_type_ids, 'smallint')}))`
    return sql`(${typed} and ((${sql.join(below, sql` and `)}) or ${nowhere}))`
  })
  return limits.length > 0 ? sql`(${sql.join(limits, sql` or `)})` : sql`false`
}

/** Which of these resources, by row number, the caller may see. */
export const visibleRids = async (
  db: Queryable,
  rids: readonly string[],
  access: RowAccess,
  topology_type_ids: readonly number[],
): Promise<ReadonlySet<string>> => {
  if (access === 'all' || rids.length === 0) return new Set(rids)
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`select r.rid from catalog.resource r
        where r.rid = any(${array(rids, 'bigint')}) and ${accessSql(access, topology_type_ids)}`,
  )
  return new Set(rows.map(({ rid }) => rid))
}

/** Keys by which a list can be sorted, as SQL and with the type for reading a key's text back. */
const SORT_KEYS = {
  resource_id: { value: sql`r.resource_id`, type: sql`text collate "C"` },
  name: { value: sql`r.name`, type: sql`text collate "C"` },
  type_key: {
    value: sql`(select y.type_key from catalog.type y where y.id = r.type_id limit 1)`,
    type: sql`text collate "C"`,
  },
  lifecycle_status: { value: sql`s.lifecycle_status collate "C"`, type: sql`text collate "C"` },
  health_status: {
    value: (
      now: Date,
    ) => sql`(case ${healthNow(now)} when 'healthy' then 0 when 'maintenance' then 1 when 'unknown' then 2
      when 'degraded' then 3 else 4 end)`,
    type: sql`integer`,
  },
  created_at: { value: sql`r.created_at`, type: sql`timestamptz` },
  updated_at: { value: sql`s.updated_at`, type: sql`timestamptz` },
} as const
export type SortKey = keyof typeof SORT_KEYS
const sqlOf = (key: SortKey, now: Date): SQL => {
  const { value } = SORT_KEYS[key]
  return typeof value === 'function' ? value(now) : value
}
export type Sort = { key: SortKey; descending: boolean }[]
export const isSortKey = (name: string): name is SortKey => Object.hasOwn(SORT_KEYS, name)

/** Rows after a position in sort order. The position is text: a Date would lose microseconds. */
const afterSql = ({ sort, now }: Pick<ListQuery, 'sort' | 'now'>, after: readonly string[]): SQL => {
  const keys = sort.map(({ key, descending }, i) => ({
    value: sqlOf(key, now),
    at: sql`${after[i] ?? ''}::${SORT_KEYS[key].type}`,
    descending,
  }))
  if (keys.every(({ descending }) => descending === keys[0]?.descending)) {
    const operator = keys[0]?.descending ? sql`<` : sql`>`
    const left = sql.join(pluck(keys, 'value'), sql`, `)
    const right = sql.join(pluck(keys, 'at'), sql`, `)
    return sql`(${left}) ${operator} (${right})`
  }
  const steps = keys.map(({ value, at, descending }, i) => {
    const equal = keys.slice(0, i).map((key) => sql`${key.value} = ${key.at}`)
    return sql`(${sql.join([...equal, sql`${value} ${descending ? sql`<` : sql`>`} ${at}`], sql` and `)})`
  })
  return sql`(${sql.join(steps, sql` or `)})`
}

export type ListQuery = {
  where: SQL[]
  sort: Sort
  /** When health is judged. */
  now: Date
  after: readonly string[] | undefined
  limit: number
  /** Without annotations and states. */
  lean?: boolean
}
/** `watermark`: the number of the last log event that the page includes. */
export type ListRow = ResourceRow & { sort_keys: string[]; watermark: string }

const lastNumbered = sql`select coalesce(max(pub_seq), 0) from catalog.outbox`

/** One page in keyset order, with each row's keys as text for the next page token. */
export const listResources = (
  db: Queryable,
  { where, sort, now, after, limit, lean }: ListQuery,
): Promise<ListRow[]> => {
  const keys = sql.join(
    sort.map(({ key }) => sql`${sqlOf(key, now)}::text`),
    sql`, `,
  )
  const order = sql.join(
    sort.map(({ key, descending }) => (descending ? sql`${sqlOf(key, now)} desc` : sqlOf(key, now))),
    sql`, `,
  )
  const conditions = after ? [...where, afterSql({ sort, now }, after)] : where
  return rowsOf(
    db,
    sql`select ${lean ? leanColumns : resourceColumns}, array[${keys}] as sort_keys, (${lastNumbered}) as watermark from ${resourceTables}
        where ${sql.join(conditions, sql` and `)} order by ${order} limit ${limitSql(limit)}`,
  )
}

/** The planner takes unknown limits for a tenth of the table. So common limits are literals, few enough to prepare. */
const USUAL_LIMITS = [51, 101, 501]
const limitSql = (limit: number): SQL => (USUAL_LIMITS.includes(limit) ? sql.raw(String(limit)) : sql`${limit}`)

export const countResources = async (db: Queryable, where: SQL[], limit: number): Promise<number> => {
  const [row] = await rowsOf<{ n: number }>(
    db,
    sql`select count(*)::int as n from (select 1 from ${resourceTables}
        where ${sql.join(where, sql` and `)} limit ${limit}) x`,
  )
  return row?.n ?? 0
}

/** The structural conditions of lists. */
export const conditions = {
  open: sql`r.is_open`,
  types: (ids: readonly number[]) => sql`r.type_id = any(${array(ids, 'smallint')})`,
  ids: (ids: readonly string[]) => sql`r.resource_id = any(${array(ids, 'text')})`,
  parent: (id: string) => sql`p.resource_id = ${id}`,
  below: (id: string, type_ids: readonly number[]) =>
    isBelow(
      sql`r.path`,
      sql`(select t.path from catalog.resource t
          where t.resource_id = ${id} and t.type_id = any(${array(type_ids, 'smallint')}))`,
    ),
  layerKind: (kind: string, type_ids: readonly number[]) =>
    sql`exists (select 1 from catalog.resource a where a.rid = any(${ridsOf(sql`r.path`)})
          and a.type_id = any(${array(type_ids, 'smallint')}) and a.desired_state->>'layer_kind' = ${kind})`,
  lifecycle: (states: readonly string[]) => sql`s.lifecycle_status = any(${array(states, 'text')})`,
  health: (now: Date, statuses: readonly string[]) => hasHealth(now, statuses),
  changedBefore: (time: string) => sql`s.updated_at < ${time}::timestamptz`,
  /** Resources with an open edge of a type to another; no rows if either is missing. */
  pointsAt: (rid: string | undefined, reltype_id: number | undefined) =>
    rid === undefined || reltype_id === undefined
      ? sql`false`
      : sql`r.rid in (select e.src from catalog.relationship e where e.dst = ${rid} and e.reltype_id = ${reltype_id})`,
  drift: (status: string) => sql`s.drift_status = ${status}`,
  label: (key: string, value: string | undefined) =>
    value === undefined ? sql`r.labels ? ${key}` : sql`r.labels @> ${JSON.stringify({ [key]: value })}::jsonb`,
}

export type TopologyCount = { rid: string; health_status: string; lifecycle_status: string; n: number }

/** The visible resources below each of these places, by health and lifecycle. */
export const countBelow = (
  db: Queryable,
  rids: readonly string[],
  access: RowAccess,
  topology_type_ids: readonly number[],
  now: Date,
): Promise<TopologyCount[]> =>
  rowsOf(
    db,
    sql`select t.rid, ${healthNow(now)} as health_status, s.lifecycle_status, count(*)::int as n
        from catalog.resource t
        join catalog.resource r on ${isBelow(sql`r.path`, sql`t.path`)} and r.rid <> t.rid and r.is_open
        join catalog.resource_state s on s.rid = r.rid
        where t.rid = any(${array(rids, 'bigint')}) and ${accessSql(access, topology_type_ids)}
        group by 1, 2, 3`,
  )

/** The number of the last event in the log, which an answer from truth includes at least. */
export const lastPubSeq = async (db: Queryable): Promise<string> =>
  first(await rowsOf<{ seq: string }>(db, sql`select (${lastNumbered}) as seq`))?.seq ?? '0'
