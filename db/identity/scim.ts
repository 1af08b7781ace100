import { and, asc, count, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { alias, type PgColumn } from 'drizzle-orm/pg-core'
import { foldUsername } from '../../apps/shared/auth/username.ts'
import { isUuid } from '../../apps/shared/ids.ts'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { external_identities, type ScimRow, scim_members, scim_resources, type UserRow, users } from './tables.ts'

export type ScimType = ScimRow['type']
/** A person, with the account, or a group, as a directory manages it. */
export type Known = { row: ScimRow; user: UserRow | null }
/** Attributes, in lower case, with the values that a filter requires. */
type Page = { terms: readonly (readonly [name: string, value: string])[]; offset: number; limit: number }

/** One parameter, however many ids there are; hashed, not compared with each, even in a table without statistics. */
export const isOneOf = (column: PgColumn, ids: readonly string[]) =>
  sql`${column} in (select unnest(${sql.param(ids)}::uuid[]))`
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
      sql`exists (select 1 from ${scim_members} where ${scim_members.group_id} = ${scim_resources.id} and ${ofId(scim_members.user_id, value)})`,
  },
}

const known = (db: Queryable) =>
  db.select({ row: scim_resources, user: users }).from(scim_resources).leftJoin(users, eq(users.id, scim_resources.id))
const ofType = (provider: string, type: ScimType) => equals(scim_resources, { provider, type })

/** People or groups that a provider's directory has not removed, oldest first. */
export const listScim = async (db: Queryable, provider: string, type: ScimType, { terms, offset, limit }: Page) => {
  const filters = terms.map(([name, value]) => FILTERS[type][name]?.(value))
  const wanted = and(ofType(provider, type), eq(scim_resources.removed, false), ...filters)
  const [all] = await db.select({ n: count() }).from(scim_resources).where(wanted)
  const rows = known(db).where(wanted).orderBy(asc(scim_resources.created_at), asc(scim_resources.id))
  return { total: all?.n ?? 0, rows: await rows.offset(offset).limit(limit) }
}

/** The resource with this id, unless the directory has removed it. */
export const scimById = (db: Queryable, provider: string, type: ScimType, id: string) =>
  known(db)
    .where(and(ofType(provider, type), eq(scim_resources.removed, false), ofId(scim_resources.id, id)))
    .then(first)

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
    .set({ ...set, version: sql`${scim_resources.version} + 1`, updated_at: sql`clock_timestamp()` as never })
    .where(eq(scim_resources.id, id))
    .returning()
    .then((rows) => rows[0] as ScimRow)

/** Records that an administrator has disabled the account, so its directory cannot enable it. */
export const keepDisabled = (tx: Tx, user_id: string) =>
  tx.update(scim_resources).set({ disabled_at: null }).where(eq(scim_resources.id, user_id))

export const scimMembersOf = (db: Queryable, group_ids: string[]) =>
  db.select().from(scim_members).where(inArray(scim_members.group_id, group_ids)).orderBy(asc(scim_members.user_id))

/** Where the map finds a group's name. Ids and names never mix: a name could otherwise claim another group's id. */
export const mapColumn = (scim: { match: string } | undefined) => (scim?.match === 'oid' ? 'external_id' : 'name')

/** The map's names of the groups of these people, of whom this provider's directory manages the returned ones. */
export const scimGroupNames = async (
  db: Queryable,
  { id: provider, scim }: { id: string; scim?: { match: string } },
  user_ids: readonly string[],
): Promise<Map<string, string[]>> => {
  const group = alias(scim_resources, 'member_of')
  const rows = await db
    .select({ id: scim_resources.id, name: group[mapColumn(scim)] })
    .from(scim_resources)
    .leftJoin(scim_members, eq(scim_members.user_id, scim_resources.id))
    .leftJoin(group, and(eq(group.id, scim_members.group_id), eq(group.provider, provider)))
    .where(and(ofType(provider, 'User'), isOneOf(scim_resources.id, user_ids)))
  const names = new Map<string, string[]>(rows.map(({ id }) => [id, []]))
  for (const { id, name } of rows) if (name !== null) names.get(id)?.push(name)
  return names
}

/**
 * The account that this provider created when the person with this id in its directory signed in. `undefined` if the
 * directory manages it already, or if two accounts claim the id.
 */
export const scimAdoptable = async (
  db: Queryable,
  { id: provider, scim }: { id: string; scim?: { match: string } },
  external_id: string,
): Promise<string | undefined> => {
  const { subject, external_id: named } = external_identities
  const [one, ...more] = await db
    .select({ id: users.id })
    .from(external_identities)
    .innerJoin(users, and(eq(users.id, external_identities.user_id), eq(users.provider, provider)))
    .leftJoin(scim_resources, eq(scim_resources.id, users.id))
    .where(
      and(
        eq(external_identities.provider, provider),
        eq(scim?.match === 'sub' ? subject : named, external_id),
        isNull(scim_resources.id),
      ),
    )
  return more.length === 0 ? one?.id : undefined
}
