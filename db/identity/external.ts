import { and, asc, gt, not, sql } from 'drizzle-orm'
import { ROLES } from '../../apps/shared/auth/permissions.ts'
import { giverOf, isAbove, type Provider } from '../../apps/shared/auth/providers.ts'
import { pick } from '../../apps/shared/data/pick.ts'
import { equals, type Queryable } from '../client.ts'
import { external_identities, type GrantRow, grants, group_members, groups, scim_resources, users } from './tables.ts'

type SignInRights = {
  memberships: { user_id: string; group_key: string; added_by: string | null }[]
  held: (Pick<GrantRow, 'id' | 'role' | 'scope' | 'expires_at' | 'created_by'> & { user_id: string })[]
  /** Those of the requested groups that exist, with their roles. */
  groups: { group_key: string; roles: string[] }[]
}

/** These people's current rights and those of these groups, in one query: each sign-in through a provider needs them. */
export const rightsAtSignIn = async (
  db: Queryable,
  user_ids: readonly string[],
  group_keys: readonly string[],
): Promise<SignInRights> => {
  const { rows } = await db.execute<SignInRights>(sql`
    select
      (select coalesce(json_agg(json_build_object('user_id', m.user_id, 'group_key', m.group_key, 'added_by', m.added_by)), '[]')
         from ${group_members} m where m.user_id = any(${sql.param(user_ids)}::uuid[])) as memberships,
      (select coalesce(json_agg(json_build_object('user_id', g.subject_id, 'id', g.id, 'role', g.role, 'scope', g.scope,
                'expires_at', g.expires_at, 'created_by', g.created_by)), '[]')
         from ${grants} g where g.subject_type = 'user' and g.subject_id = any(${sql.param(user_ids)}::text[])) as held,
      (select coalesce(json_agg(json_build_object('group_key', k.group_key, 'roles', array(
                select distinct g.role from ${grants} g where g.subject_type = 'group' and g.subject_id = k.group_key
                  and (g.expires_at is null or g.expires_at > clock_timestamp())))), '[]')
         from ${groups} k where k.group_key = any(${sql.param(group_keys)}::text[])) as groups`)
  const [found] = rows
  if (!found) throw new Error('a question without conditions had no answer')
  return found
}

/** A right that a provider gave: a membership, or a grant with its id and role. */
export type Ungiven = {
  giver: string
  user_id: string
  group_key: string | null
  id: string | null
  role: string | null
}

/** A provider's longest session, 30 days: a person without one since may have left it. */
const LONGEST_SESSION = sql`interval '30 days'`

/**
 * The rights of these people, or of all, that providers gave and that no entry of the maps gives now. A group that has a
 * role above the provider's ceiling is not given. Also all that one gave to people whom neither its directory maintains
 * nor it has signed in since.
 */
export const listUngiven = async (
  db: Queryable,
  providers: readonly Pick<Provider, 'id' | 'groups' | 'max_role'>[],
  user_ids?: readonly string[],
): Promise<Ungiven[]> => {
  const given = providers.flatMap(({ id, groups: { map = {} } = {}, max_role }) => {
    const above = ROLES.filter((role) => isAbove({ max_role }, role))
    return Object.values(map).flatMap(({ groups = [], roles = [] }) => [
      ...groups.map((group_key) => ({ giver: giverOf(id), group_key, above })),
      ...roles.map((role) => ({ giver: giverOf(id), role })),
    ])
  })
  const { rows } = await db.execute<Ungiven>(sql`
    with given as materialized
      (select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g (giver text, group_key text, role text, above text[])
        where not exists (select from ${grants} h where h.subject_type = 'group' and h.subject_id = g.group_key
          and h.role = any(g.above) and (h.expires_at is null or h.expires_at > clock_timestamp())))
    select r.* from (
      select added_by as giver, user_id, group_key, null::uuid as id, null as role
        from ${group_members} where added_by like 'provider:%'
      union all
      select created_by, subject_id::uuid, null, id, role
        from ${grants} where subject_type = 'user' and created_by like 'provider:%') r
    where ${user_ids ? sql`r.user_id = any(${sql.param(user_ids)}::uuid[])` : sql`true`}
      and (not exists (select from given g where g.giver = r.giver and (g.group_key = r.group_key or g.role = r.role))
        or not exists (select from ${scim_resources} s where s.id = r.user_id and 'provider:' || s.provider = r.giver)
          and not exists (select from ${external_identities} e where e.user_id = r.user_id
            and 'provider:' || e.provider = r.giver
            and coalesce(e.proved_at, e.created_at) > clock_timestamp() - ${LONGEST_SESSION}))`)
  return rows
}

/** Whether the person signs in through one of these providers, or is of one's directory. */
const isOf = (ids: readonly string[]) => sql`(
  exists (select from ${external_identities} e where e.user_id = ${users.id} and e.provider = any(${sql.param(ids)}::text[]))
  or exists (select from ${scim_resources} s where s.id = ${users.id} and s.provider = any(${sql.param(ids)}::text[])))`
const active = equals(users, { kind: 'person', status: 'ACTIVE' })
/** The same for olga, olga@example.com and olga~2. */
const stem = sql<string>`regexp_replace(split_part(${users.folded}, '@', 1), '~[0-9]+$', '')`

/** Active people without an identity at one of these providers, by name, one page after a name. */
export const listUnlinked = (db: Queryable, ids: readonly string[], after: string | undefined, limit: number) =>
  db
    .select({ ...pick(users, 'id', 'username', 'folded', 'enrolled', 'created_at'), stem })
    .from(users)
    .where(and(active, not(isOf(ids)), after === undefined ? undefined : gt(users.username, after)))
    .orderBy(asc(users.username))
    .limit(limit)

/** The accounts of these providers whose name begins alike: perhaps second ones of the same people. */
export const twinsOf = (db: Queryable, ids: readonly string[], stems: readonly string[]) =>
  stems.length === 0
    ? Promise.resolve([])
    : db
        .select({ ...pick(users, 'id', 'username'), stem })
        .from(users)
        .where(and(active, isOf(ids), sql`${stem} = any(${sql.param(stems)}::text[])`))
        .orderBy(asc(users.username))

/** The people and groups that a provider's directory maintains by SCIM, and when it last changed one. */
export type Directory = { people: number; groups: number; changed_at: string | null }
const NONE: Directory = { people: 0, groups: 0, changed_at: null }

/** By provider: the accounts with an identity there, and its directory. */
export const providerCounts = async (db: Queryable) => {
  const linked = await db.execute<{ provider: string; people: number }>(
    sql`select provider, count(*)::int as people from ${external_identities} group by provider`,
  )
  const maintained = await db.execute<Directory & { provider: string }>(sql`
    select provider, count(*) filter (where type = 'User')::int as people,
           count(*) filter (where type = 'Group')::int as groups, to_json(max(updated_at)) as changed_at
      from ${scim_resources} where not removed group by provider`)
  const people = new Map(linked.rows.map((row) => [row.provider, row.people]))
  const directories = new Map(maintained.rows.map(({ provider, ...row }) => [provider, row]))
  return (provider: string) => ({ people: people.get(provider) ?? 0, directory: directories.get(provider) ?? NONE })
}
