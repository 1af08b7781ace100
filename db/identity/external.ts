import { sql } from 'drizzle-orm'
import type { Queryable } from '../client.ts'
import { type GrantRow, grants, group_members, groups } from './tables.ts'

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
