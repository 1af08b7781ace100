import { type SQL, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../client.ts'
import type { Claims, HeldOffer } from './held/offers.ts'
import { hadExpired, healthNow, healthThen } from './resources/health-now.ts'
import { accessSql, type RowAccess } from './resources/lists.ts'
import { array, rowsOf } from './resources/rows.ts'
import type { ResourceRow } from './rows.ts'
import type { provider } from './tables.ts'

export type ProviderRow = typeof provider.$inferSelect

const kept = sql`provider_id, rid, capability_id, version, attributes, capacity, priority, expires_at, last_command_id,
  rev, valid_from`

/** Resources with expired providers whose expiry has not been emitted. */
export const expiredProviders = async (
  db: Queryable,
  now: string,
  limit: number,
  without: readonly string[],
): Promise<string[]> => {
  const rows = await rowsOf<{ rid: string }>(
    db,
    sql`select distinct rid from (select rid from catalog.provider
          where withdrawn_at is null and not swept and expires_at <= ${now}::timestamptz
            and rid <> all(${array(without, 'bigint')})
          order by expires_at limit ${limit}) x order by rid`,
  )
  return rows.map(({ rid }) => rid)
}

/** Marks the expired providers of a resource as emitted; returns their ids. */
export const markProvidersSwept = async (tx: Tx, rid: string, now: string): Promise<string[]> => {
  const rows = await rowsOf<{ provider_id: string }>(
    tx,
    sql`update catalog.provider set swept = true
        where rid = ${rid} and withdrawn_at is null and not swept and expires_at <= ${now}::timestamptz
        returning provider_id`,
  )
  return rows.map(({ provider_id }) => provider_id)
}

/** The owners of the offers that these resources claim. */
export const claimedOwners = async (db: Queryable, rids: readonly string[], uses_id: number): Promise<string[]> => {
  const rows = await rowsOf<{ dst: string }>(
    db,
    sql`select distinct dst from catalog.relationship
        where src = any(${array(rids, 'bigint')}) and reltype_id = ${uses_id}`,
  )
  return rows.map(({ dst }) => dst)
}

/** How many capabilities each of these resources currently offers. */
export const countProviders = async (db: Queryable, rids: readonly string[]): Promise<Map<string, number>> => {
  const rows = await rowsOf<{ rid: string; n: number }>(
    db,
    sql`select rid, count(*)::int as n from catalog.provider
        where rid = any(${array(rids, 'bigint')}) and withdrawn_at is null group by rid`,
  )
  return new Map(rows.map(({ rid, n }) => [rid, n]))
}

/** A provider with its resource and its claims: open uses_capability edges that name it. */
export type OfferRow = ProviderRow &
  Pick<ResourceRow, 'resource_id' | 'type_id' | 'path' | 'is_open' | 'lifecycle_status'> &
  Pick<ResourceRow, 'health_status' | 'health_reason' | 'health_expires_at'> & {
    capability_key: string
    reserved: number
    claims: number
  }

/** Claims open now or at a given time: the edges that satisfy the condition over the alias o. */
const edgesOpen = (at: string | undefined, condition: SQL): SQL =>
  at === undefined
    ? sql`(select o.src, o.dst, o.rel_no, o.properties from catalog.relationship o where ${condition})`
    : sql`(select o.src, o.dst, o.rel_no, o.properties from catalog.relationship o
             where ${condition} and o.valid_from <= ${at}::timestamptz
           union all
           select o.src, o.dst, o.rel_no, o.properties from catalog.relationship_history o
             where ${condition} and o.valid_from <= ${at}::timestamptz and o.valid_to > ${at}::timestamptz)`

/** A claim without an amount counts as one. */
const claimsOf = (uses_id: number | SQL, at: string | undefined): SQL =>
  sql`(select coalesce(sum(coalesce((e.properties->>'amount')::float8, 1)), 0) as reserved, count(*)::int as claims
       from ${edgesOpen(at, sql`o.dst = v.rid and o.reltype_id = ${uses_id}`)} e where e.properties->>'provider_id' = v.provider_id)`

/** Providers now, or as they were at a given time. */
const providersOf = (at: string | undefined): SQL =>
  at === undefined
    ? sql`catalog.provider`
    : sql`(select ${kept}, null::timestamptz as withdrawn_at from catalog.provider
             where valid_from <= ${at}::timestamptz and withdrawn_at is null
           union all
           select ${kept}, null from catalog.provider_history
             where valid_from <= ${at}::timestamptz and valid_to > ${at}::timestamptz)`

/** Resource states now, or as they were at a given time. */
const statesOf = (at: string | undefined): SQL =>
  at === undefined
    ? sql`join catalog.resource_state s on s.rid = v.rid`
    : sql`join lateral (select x.lifecycle_status, ${healthThen(sql`v.rid`, sql`x.lifecycle_status`, at)} as health_status,
            case when ${hadExpired(sql`v.rid`, at)} then 'expired' else 'observed' end as health_reason,
            null::timestamptz as health_expires_at from catalog.revision x
          where x.rid = v.rid and x.at <= ${at}::timestamptz order by x.version desc limit 1) s on true`

export const offers = {
  open: sql`v.withdrawn_at is null and r.is_open`,
  capability: (id: number) => sql`v.capability_id = ${id}`,
  of: (rid: string) => sql`v.rid = ${rid}`,
  ofAny: (rids: readonly string[]) => sql`v.rid = any(${array(rids, 'bigint')})`,
  ids: (provider_ids: readonly string[]) => sql`v.provider_id = any(${array(provider_ids, 'text')})`,
}

/** Providers with all that matching needs, at most `limit`, by id; `at`: as then. `uses_id`: the type of claims. */
export const listOffers = async (
  db: Queryable,
  uses_id: number,
  where: readonly SQL[],
  limit: number,
  at?: string,
): Promise<OfferRow[]> =>
  rowsOf(
    db,
    sql`select v.provider_id, v.rid, v.capability_id, c.capability_key, v.version, v.attributes, v.capacity, v.priority,
          v.expires_at, v.withdrawn_at, v.last_command_id, v.rev, r.resource_id, r.type_id, r.path::text as path, r.is_open,
          s.lifecycle_status, s.health_status, s.health_reason, s.health_expires_at, u.reserved, u.claims
        from ${providersOf(at)} v
        join catalog.capability_def c on c.id = v.capability_id and c.version = v.version
        join catalog.resource r on r.rid = v.rid
        ${statesOf(at)}
        cross join lateral ${claimsOf(uses_id, at)} u
        where ${sql.join([...where], sql` and `)} order by v.provider_id limit ${limit}`,
  )

const USES = sql`(select id from catalog.relationship_type where type_key = 'uses_capability')`

/**
 * The current offers of these resources and withdrawn ones that are still claimed, with the claims on them. Two reads:
 * only the current ones are in `provider_open`, and many offers may have been withdrawn.
 */
export const heldOffersOf = (db: Queryable, rids: readonly string[]): Promise<(HeldOffer & Claims)[]> =>
  rowsOf(
    db,
    sql`select ${kept}, withdrawn_at, swept, u.reserved, u.claims,
          (select capability_key from catalog.capability_def c where c.id = v.capability_id limit 1) as capability_key
        from (select * from catalog.provider where rid = any(${array(rids, 'bigint')}) and withdrawn_at is null
          union all
          select * from catalog.provider where withdrawn_at is not null and rid = any(${array(rids, 'bigint')})
            and provider_id in (select o.properties->>'provider_id' from catalog.relationship o
              where o.dst = any(${array(rids, 'bigint')}) and o.reltype_id = ${USES})) v
        cross join lateral ${claimsOf(USES, undefined)} u order by provider_id`,
  )

export type DefinitionCount = { capability_id: number; status: string; region_id: string | null; n: number }

/** How many providers of each definition the caller may see, by effective status and region. */
export const countOffers = (
  db: Queryable,
  capability_ids: readonly number[],
  {
    access,
    topology_ids,
    region_ids,
  }: { access: RowAccess; topology_ids: readonly number[]; region_ids: readonly number[] },
  now: string,
): Promise<DefinitionCount[]> =>
  rowsOf(
    db,
    sql`select v.capability_id,
          case when v.expires_at <= ${now}::timestamptz then 'stale'
               when s.lifecycle_status not in ('active', 'updating') or ${healthNow(new Date(now))} in ('degraded', 'unhealthy')
                 or s.health_reason = 'expired' or (s.health_expires_at <= ${now}::timestamptz and not exists (select from
                   catalog.observation_latest o where o.rid = s.rid and o.expires_at > ${now}::timestamptz)) then 'degraded'
               else 'available' end as status,
          g.resource_id as region_id, count(*)::int as n
        from catalog.provider v
        join catalog.resource r on r.rid = v.rid
        join catalog.resource_state s on s.rid = v.rid
        left join catalog.resource g on g.rid = subpath(r.path, 0, 1)::text::bigint
          and g.type_id = any(${array(region_ids, 'smallint')})
        where v.capability_id = any(${array(capability_ids, 'smallint')}) and v.withdrawn_at is null and r.is_open
          and ${accessSql(access, topology_ids)}
        group by 1, 2, 3`,
  )

export type Reservation = { rel_no: string; src: string; dst: string; resource_id: string; target_id: string }

/** Expired claims, the oldest first. Their times are UTC text of one length. */
export const expiredClaims = (
  db: Queryable,
  uses_id: number,
  now: string,
  limit: number,
  without: readonly string[],
): Promise<Reservation[]> =>
  rowsOf(
    db,
    sql`select e.rel_no, e.src, e.dst, r.resource_id, o.resource_id as target_id from catalog.relationship e
        join catalog.resource r on r.rid = e.src join catalog.resource o on o.rid = e.dst
        where e.properties->>'expires_at' is not null and e.properties->>'expires_at' <= ${now} and e.reltype_id = ${uses_id}
          and e.rel_no <> all(${array(without, 'bigint')})
        order by e.properties->>'expires_at' limit ${limit}`,
  )

export type ClaimRow = {
  rid: string
  rel_no: string
  peer_rid: string
  peer_id: string
  properties: Record<string, unknown>
  /** The capability of the claimed provider; null if the peer has no such provider, or it is withdrawn. */
  offered: string | null
}

/** The claims of these resources now or at a given time: their open uses_capability edges. */
export const listClaims = async (
  db: Queryable,
  rids: readonly string[],
  uses_id: number,
  at?: string,
): Promise<ClaimRow[]> =>
  rowsOf(
    db,
    sql`select e.src as rid, e.rel_no, e.dst as peer_rid, n.resource_id as peer_id, e.properties,
          (select c.capability_key from ${providersOf(at)} v
             join catalog.capability_def c on c.id = v.capability_id and c.version = v.version
             where v.rid = e.dst and v.provider_id = e.properties->>'provider_id' and v.withdrawn_at is null) as offered
        from ${edgesOpen(at, sql`o.src = any(${array(rids, 'bigint')}) and o.reltype_id = ${uses_id}`)} e
        join catalog.resource n on n.rid = e.dst order by e.rel_no`,
  )
