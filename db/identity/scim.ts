import { and, asc, count, eq, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { foldUsername } from '../../apps/shared/auth/username.ts'
import { isUuid } from '../../apps/shared/ids.ts'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { NOW } from '../rows.ts'
import {
  external_identities,
  grants,
  group_members,
  groups,
  type ScimRow,
  scim_members,
  scim_resources,
  scim_unaligned,
  type UserRow,
  users,
} from './tables.ts'

export type ScimType = ScimRow['type']
/** A person, with the account, or a group, as a directory manages it. */
export type Known = { row: ScimRow; user: UserRow | null }
/** Attributes, in lower case, with the values that a filter requires. */
type Page = { terms: readonly (readonly [name: string, value: string])[]; offset: number; limit: number }

/** One parameter, however many ids there are: hashed, not compared with each, even in a table without statistics. */
export const isOneOf = (column: PgColumn, ids: readonly string[]) =>
  sql`(${column} in (select unnest(${sql.param(ids)}::uuid[]))) is true`
/** One resource by its primary key: the limit keeps the planner from reading all of a provider first. */
const byKey = (id: string, as: string) =>
  sql`cross join lateral (select * from ${scim_resources} x where x.id = ${sql.raw(id)} limit 1) ${sql.raw(as)}`
/** Of these ids those of people whom this directory manages, as `r`. */
const peopleAmong = (provider: string, ids: readonly string[]) =>
  sql`unnest(${sql.param(ids)}::uuid[]) p(id) ${byKey('p.id', 'r')} where r.provider = ${provider} and r.type = 'User'`
/** Whether an administrator deleted the account. */
const isDeleted = (id: SQL | PgColumn) =>
  sql`exists (select from ${users} u where u.id = ${id} and u.status = 'DELETED')`
/** Uses the column's index; a text that is not an id matches no row. */
const ofId = (column: PgColumn, value: string) => (isUuid(value) ? sql`${column} = ${value}` : sql`false`)
const BOTH: Record<string, (value: string) => SQL> = {
  id: (value) => ofId(scim_resources.id, value),
  externalid: (value) => eq(scim_resources.external_id, value),
}
const named = (value: string) => eq(scim_resources.folded, foldUsername(value))
export const FILTERS: Record<ScimType, typeof BOTH> = {
  User: {
    ...BOTH,
    username: named,
    displayname: (value) => sql`lower(${scim_resources.display_name}) = lower(${value})`,
  },
  Group: {
    ...BOTH,
    displayname: named,
    members: (value) =>
      sql`exists (select 1 from ${scim_members} where ${scim_members.group_id} = ${scim_resources.id} and ${ofId(scim_members.user_id, value)}
        and not ${isDeleted(scim_members.user_id)})`,
  },
}

const known = (db: Queryable) =>
  db.select({ row: scim_resources, user: users }).from(scim_resources).leftJoin(users, eq(users.id, scim_resources.id))
const ofType = (provider: string, type: ScimType) => equals(scim_resources, { provider, type })
/** The directory removed it, or an administrator deleted the account: reads do not find it. */
const gone = or(eq(scim_resources.removed, true), eq(users.status, 'DELETED')) ?? sql`false`
const present = sql`(${gone}) is not true`

/** People or groups that a provider's directory has not removed, oldest first; no local account of these names. */
export const listScim = async (
  db: Queryable,
  provider: string,
  type: ScimType,
  { terms, offset, limit }: Page,
  spared: readonly string[],
) => {
  const filters = terms.map(([name, value]) => FILTERS[type][name]?.(value))
  const emergency = and(isNull(users.provider), inArray(users.folded, spared.map(foldUsername)))
  const wanted = and(ofType(provider, type), present, sql`(${emergency}) is not true`, ...filters)
  const counted = db.select({ n: count() }).from(scim_resources).leftJoin(users, eq(users.id, scim_resources.id))
  const [all] = await counted.where(wanted)
  const rows = known(db).where(wanted).orderBy(asc(scim_resources.created_at), asc(scim_resources.id))
  return { total: all?.n ?? 0, rows: await rows.offset(offset).limit(limit) }
}

/** The resource with this id, unless it is gone. */
export const scimById = (db: Queryable, provider: string, type: ScimType, id: string) =>
  known(db)
    .where(and(ofType(provider, type), present, ofId(scim_resources.id, id)))
    .then(first)

/** Whether another person of this name gets a numbered account: the one that has it is deleted, or this directory's. */
export const isNumbered = async (db: Queryable, provider: string, folded: string): Promise<boolean> => {
  const ours = and(eq(scim_resources.id, users.id), eq(scim_resources.provider, provider))
  const theirs = and(eq(users.folded, folded), sql`(${scim_resources.id} is not null or ${users.status} = 'DELETED')`)
  return (await db.select({ id: users.id }).from(users).leftJoin(scim_resources, ours).where(theirs)).length > 0
}

/** Takes the name of a person who is gone off their record, so that another can have it in the directory. */
export const freeName = async (tx: Tx, provider: string, folded: string): Promise<void> => {
  const [former] = await known(tx).where(and(ofType(provider, 'User'), gone, eq(scim_resources.folded, folded)))
  if (!former) return
  const { id, name } = former.row
  await updateScim(tx, id, { name: `${name} ${id}`, folded: `${folded} ${id}` })
}

/** The resource with this external id or folded name, even a removed one. */
export const scimBy = (
  db: Queryable,
  provider: string,
  type: ScimType,
  { external_id, folded = '' }: { external_id?: string | null; folded?: string },
) =>
  known(db)
    .where(
      and(
        ofType(provider, type),
        external_id == null ? eq(scim_resources.folded, folded) : eq(scim_resources.external_id, external_id),
      ),
    )
    .then(first)

export const updateScim = (tx: Tx, id: string, set: Partial<ScimRow>) =>
  tx
    .update(scim_resources)
    .set({ ...set, version: sql`${scim_resources.version} + 1`, updated_at: NOW })
    .where(eq(scim_resources.id, id))
    .returning()
    .then((rows) => rows[0] as ScimRow)

/** Takes the directory's id off the record of a deleted account, for another one. Returns whether it had an id. */
export const freeId = async (tx: Tx, provider: string, id: string): Promise<boolean> => {
  const [held] = await tx
    .select({ id: scim_resources.id })
    .from(scim_resources)
    .where(and(ofType(provider, 'User'), eq(scim_resources.id, id), isNotNull(scim_resources.external_id)))
  if (held) await updateScim(tx, id, { external_id: null })
  return held !== undefined
}

/** Records that an administrator has disabled the account, so its directory cannot enable it. */
export const keepDisabled = (tx: Tx, user_id: string) =>
  tx.update(scim_resources).set({ disabled_at: null }).where(eq(scim_resources.id, user_id))

/** The members of these groups. Those whom an older build deleted have kept their rows, and do not count. */
export const scimMembersOf = (db: Queryable, group_ids: string[]) =>
  db
    .select()
    .from(scim_members)
    .where(and(inArray(scim_members.group_id, group_ids), sql`not ${isDeleted(scim_members.user_id)}`))
    .orderBy(asc(scim_members.user_id))

/** Where the map finds a group's name. Ids and names never mix: a name could otherwise claim another group's id. */
export const mapColumn = (scim: Matched) => (isById(scim) ? 'external_id' : 'name')
export const isById = (scim: Matched): boolean => scim?.match === 'oid'
type Matched = { match: string } | undefined

/** The map's names of the groups of the person `r`. */
const namesOf = (provider: string, column: SQL) =>
  sql`array(select ${column} from ${scim_members} m ${byKey('m.group_id', 'g')}
    where m.user_id = r.id and g.provider = ${provider} and ${column} is not null)`

/** The map's names of the groups of these people, of whom this provider's directory manages the returned ones. */
export const scimGroupNames = async (
  db: Queryable,
  { id: provider, scim }: { id: string; scim?: { match: string } },
  user_ids: readonly string[],
): Promise<Map<string, string[]>> => {
  const column = sql`g.${sql.identifier(mapColumn(scim))}`
  const { rows } = await db.execute<{ id: string; names: string[] }>(
    sql`select r.id, ${namesOf(provider, column)} as names from ${peopleAmong(provider, user_ids)}`,
  )
  return new Map(rows.map(({ id, names }) => [id, names]))
}

/** The same of one person, as a column; null unless this provider's directory manages them. */
export const scimGroupsOf = (user_id: PgColumn, provider: string, by_id: boolean) =>
  sql<
    string[] | null
  >`(select ${namesOf(provider, sql`case when ${by_id}::boolean then g.external_id else g.name end`)} from ${scim_resources} r
    where r.id = ${user_id} and r.provider = ${provider} and r.type = 'User')`

/** Of these ids those of people whom the directory manages and has not removed, and whether they were deleted here. */
export const peopleOf = async (db: Queryable, provider: string, ids: readonly string[]) => {
  const { rows } = await db.execute<{ id: string; deleted: boolean }>(
    sql`select r.id, ${isDeleted(sql`r.id`)} as deleted from ${peopleAmong(provider, ids)} and not r.removed`,
  )
  return rows
}

/** Records that the rights of these people have yet to follow their groups. */
export const queueUnaligned = (tx: Tx, user_ids: readonly string[]) =>
  tx.execute(sql`insert into ${scim_unaligned} select unnest(${sql.param(user_ids)}::uuid[]) on conflict do nothing`)

/** A provider whose directory states groups, with the names of those that the map gives rights to. */
type Mapped = { id: string; scim?: { match: string }; groups?: { map: Record<string, Given> } }
type Given = { groups?: string[]; roles?: string[] }

/**
 * Records so those who lack a right that the map gives to a group of theirs: the provider was switched on again, or the
 * map has changed. Who may not have the right stays as they are.
 */
export const queueLacking = async (db: Queryable, providers: readonly Mapped[]): Promise<void> => {
  const given = providers.flatMap(({ id: provider, scim, groups: { map = {} } = {} }) =>
    Object.entries(map).flatMap(([name, { groups = [], roles = [] }]) => {
      const one = { provider, name, by_id: isById(scim) }
      return [...groups.map((group_key) => ({ ...one, group_key })), ...roles.map((role) => ({ ...one, role }))]
    }),
  )
  if (given.length === 0) return
  await db.execute(sql`
    insert into ${scim_unaligned}
    select distinct m.user_id
      from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as x (provider text, name text, by_id boolean, group_key text, role text)
      join ${scim_resources} g on g.provider = x.provider and g.type = 'Group'
        and x.name = case when x.by_id then g.external_id else g.name end
      join ${scim_members} m on m.group_id = g.id
     where (x.role is null and exists (select from ${groups} k where k.group_key = x.group_key)
          and not exists (select from ${group_members} h where h.user_id = m.user_id and h.group_key = x.group_key))
        or (x.role is not null and not exists (select from ${grants} h where h.subject_type = 'user'
          and h.subject_id = m.user_id::text and h.role = x.role and h.scope = '{}' and h.expires_at is null))
    on conflict do nothing`)
}

/** Some of the people so recorded, of these providers. */
export const listUnaligned = async (db: Queryable, providers: readonly string[], limit: number) => {
  const { rows } = await db.execute<{ user_id: string; provider: string }>(sql`
    select q.user_id, r.provider from ${scim_unaligned} q join ${scim_resources} r on r.id = q.user_id
    where r.provider = any(${sql.param(providers)}::text[]) limit ${limit}`)
  return rows
}
/** How many people so recorded are of each other provider. */
export const countStranded = async (db: Queryable, providers: readonly string[]) => {
  const { rows } = await db.execute<{ provider: string; people: number }>(sql`
    select r.provider, count(*)::int as people from ${scim_unaligned} q join ${scim_resources} r on r.id = q.user_id
    where r.provider <> all(${sql.param(providers)}::text[]) group by r.provider order by r.provider`)
  return rows
}
export const dropUnaligned = (tx: Tx, user_ids: readonly string[]) =>
  tx.delete(scim_unaligned).where(isOneOf(scim_unaligned.user_id, user_ids))

/**
 * The account, even a deleted one, of whoever has signed in here as the person with this id in the directory: created
 * then, or linked by its own person. `undefined` if the directory manages it already, or if two accounts claim the id.
 */
export const scimAdoptable = async (
  db: Queryable,
  { id: provider, scim }: { id: string; scim?: { match: string } },
  external_id: string,
): Promise<UserRow | undefined> => {
  const { subject, external_id: named } = external_identities
  const [one, ...more] = await db
    .select({ user: users })
    .from(external_identities)
    .innerJoin(users, eq(users.id, external_identities.user_id))
    .leftJoin(scim_resources, eq(scim_resources.id, users.id))
    .where(
      and(
        eq(external_identities.provider, provider),
        eq(scim?.match === 'sub' ? subject : named, external_id),
        isNull(scim_resources.id),
      ),
    )
  return more.length === 0 ? one?.user : undefined
}
