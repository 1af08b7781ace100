import { and, asc, desc, eq, gt, ilike, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import { union } from 'drizzle-orm/pg-core'
import { type AuditFilter, auditMatches } from '../audit.ts'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { lockOf } from '../locks.ts'
import { builtOnce, NOW } from '../rows.ts'
import {
  dual_control,
  external_identities,
  grants,
  group_members,
  groups,
  machine_credentials,
  machine_owners,
  named_user,
  outbox,
  type UserRow,
  type UserStatus,
  user_events,
  users,
} from './tables.ts'

export const getUser = (db: Queryable, id: string): Promise<UserRow | undefined> => userById(db, { id }).then(first)
const userById = builtOnce(['id'], (db, { id }) => db.select().from(users).where(eq(users.id, id)))
/** `getUser` as a prepared query, because every refresh of every user runs it. */
export const preparedGetUser = (db: Queryable) => {
  const query = db
    .select()
    .from(users)
    .where(eq(users.id, sql.placeholder('id')))
    .prepare('get_user')
  return (id: string) => query.execute({ id }).then(first)
}
/** A user who has an identity at this provider. */
export const preparedGetLinked = (db: Queryable) => {
  const query = db
    .select({ user: users })
    .from(external_identities)
    .innerJoin(users, eq(users.id, external_identities.user_id))
    .where(
      and(
        eq(external_identities.user_id, sql.placeholder('id')),
        eq(external_identities.provider, sql.placeholder('provider')),
      ),
    )
    .prepare('get_linked_user')
  return (id: string, provider: string) => query.execute({ id, provider }).then((rows) => rows[0]?.user)
}
/** This person's identities at providers, and how many seconds ago each provider last signed them in. */
export const lastProofs = (db: Queryable, user_id: string) => {
  const { provider, subject, proved_at, created_at } = external_identities
  const age_s = sql<number>`extract(epoch from clock_timestamp() - coalesce(${proved_at}, ${created_at}))::float8`
  return db
    .select({ provider, subject, age_s })
    .from(external_identities)
    .where(equals(external_identities, { user_id }))
}
export const usersByIds = async (db: Queryable, ids: readonly string[]): Promise<UserRow[]> =>
  ids.length === 0
    ? []
    : db
        .select()
        .from(users)
        .where(inArray(users.id, [...ids]))
export const getUserByFolded = (db: Queryable, folded: string) =>
  db.select().from(users).where(eq(users.folded, folded)).then(first)
export const lockUser = (tx: Tx, id: string) =>
  tx.select().from(users).where(eq(users.id, id)).for('update').then(first)
export const getGroup = (db: Queryable, group_key: string) =>
  db.select().from(groups).where(eq(groups.group_key, group_key)).then(first)

export type HeldGrant = {
  id: string
  role: string
  scope: Record<string, string>
  expires_at: string | null
  via_group_key: string | null
  user_id: string
  created_at: string
  created_by: string
  confirmed_by: string | null
}

/** The current grants of these users, both their own and those of their groups. */
export const heldGrants = async (db: Queryable, user_ids: string[]): Promise<HeldGrant[]> => {
  if (user_ids.length === 0) return []
  const { rows } = await db.execute<HeldGrant>(sql`
    select g.id, g.role, g.scope, to_char(g.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as expires_at, null as via_group_key, g.subject_id as user_id, g.created_at, g.created_by, g.confirmed_by
    from ${grants} g where g.subject_type = 'user' and g.subject_id = any(${sql.param(user_ids)}::text[]) and (g.expires_at is null or g.expires_at > clock_timestamp())
    union all
    select g.id, g.role, g.scope, to_char(g.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), m.group_key, m.user_id::text, g.created_at, g.created_by, g.confirmed_by
    from ${grants} g join ${group_members} m on m.group_key = g.subject_id
    where g.subject_type = 'group' and m.user_id = any(${sql.param(user_ids)}::uuid[]) and (g.expires_at is null or g.expires_at > clock_timestamp())
    order by role, id`)
  return rows
}

/** The groups of these users, by key. */
export const membershipsOf = async (db: Queryable, user_ids: string[]) =>
  user_ids.length === 0 ? [] : membershipsByIds(db, { user_ids })
const membershipsByIds = builtOnce(['user_ids'], (db, { user_ids }) =>
  db
    .select()
    .from(group_members)
    .where(sql`${group_members.user_id} = any(${user_ids}::uuid[])`)
    .orderBy(asc(group_members.group_key)),
)
export type MembershipRow = Awaited<ReturnType<typeof membershipsOf>>[number]

export type UserFilter = {
  status?: UserStatus
  q?: string
  role?: string
  group_key?: string
  after?: { username: string; id: string }
  limit: number
}

/** Users by name and id, one page after a key. */
export const listUsers = (
  db: Queryable,
  { status, q, role, group_key, after, limit }: UserFilter,
): Promise<UserRow[]> => {
  const conditions: (SQL | undefined)[] = [
    status && eq(users.status, status),
    q ? ilike(users.username, `%${q.replaceAll(/[\\%_]/g, '\\$&')}%`) : undefined,
    group_key
      ? sql`exists (select 1 from ${group_members} m where m.user_id = ${users.id} and m.group_key = ${group_key})`
      : undefined,
    role
      ? sql`exists (select 1 from ${grants} g left join ${group_members} m on g.subject_type = 'group' and m.group_key = g.subject_id
        where g.role = ${role} and (g.expires_at is null or g.expires_at > clock_timestamp())
          and ((g.subject_type = 'user' and g.subject_id = ${users.id}::text) or m.user_id = ${users.id}))`
      : undefined,
    after && or(gt(users.username, after.username), and(eq(users.username, after.username), gt(users.id, after.id))),
  ]
  return db
    .select()
    .from(users)
    .where(and(...conditions))
    .orderBy(asc(users.username), asc(users.id))
    .limit(limit)
}

/** Serializes every change of users, groups and grants that could remove the last administrator or add a second. */
export const lockAdmins = (tx: Tx) => tx.execute(sql`select ${lockOf('admins')}`)

type Administrator = { id: string; link_shown: boolean; able: boolean }
const administrators = async (db: Queryable): Promise<Administrator[]> => {
  const { rows } = await db.execute<Administrator>(sql`
    select distinct u.id::text as id, u.link_shown,
      u.enrolled or exists (select from ${external_identities} e where e.user_id = u.id) as able from ${users} u
    join ${grants} g on g.role = 'admin' and g.expires_at is null
    left join ${group_members} m on g.subject_type = 'group' and m.group_key = g.subject_id and m.user_id = u.id
    where u.status = 'ACTIVE' and u.kind = 'person' and ((g.subject_type = 'user' and g.subject_id = u.id::text) or m.user_id is not null)`)
  return rows
}

/** Active users who hold admin permanently, directly or through a group. */
export const lastingAdmins = async (db: Queryable): Promise<string[]> => (await administrators(db)).map(({ id }) => id)

/** Those of them who can sign in: an account that was only invited keeps no installation administered. */
export const ableAdmins = async (db: Queryable): Promise<string[]> =>
  (await administrators(db)).flatMap(({ id, able }) => (able ? [id] : []))

/** The lasting administrators who alone know their credential: two of these check each other. */
export const provenAdmins = async (db: Queryable): Promise<string[]> =>
  (await administrators(db)).flatMap(({ id, link_shown }) => (link_shown ? [] : [id]))

/** Since when two administrators check each other; `undefined` while one suffices. */
export const dualSince = (db: Queryable): Promise<string | undefined> =>
  dualControl(db, {}).then((rows) => rows[0]?.since)
const dualControl = builtOnce([], (db) => db.select({ since: dual_control.since }).from(dual_control))

/** Active accounts whose credential one administrator may know. */
export const shownUsers = (db: Queryable): Promise<string[]> =>
  db
    .select({ id: users.id })
    .from(users)
    .where(equals(users, { status: 'ACTIVE', link_shown: true }))
    .then((rows) => rows.map(({ id }) => id))

/** The roles that a group currently gives its members. */
export const rolesOfGroup = (db: Queryable, group_key: string): Promise<string[]> =>
  db
    .selectDistinct({ role: grants.role })
    .from(grants)
    .where(
      and(
        equals(grants, { subject_type: 'group', subject_id: group_key }),
        or(isNull(grants.expires_at), gt(grants.expires_at, NOW)),
      ),
    )
    .orderBy(asc(grants.role))
    .then((rows) => rows.map(({ role }) => role))

/** Records another change of these users: consumers and caches see a new version. */
export const bumpUsers = (tx: Tx, user_ids: string[]) =>
  tx
    .update(users)
    .set({ version: sql`${users.version} + 1` })
    .where(inArray(users.id, user_ids))

export const membersOf = (db: Queryable, group_key: string) =>
  db
    .select({ user_id: group_members.user_id })
    .from(group_members)
    .where(eq(group_members.group_key, group_key))
    .then((rows) => rows.map((row) => row.user_id))

/** People whose factors in credential have yet to end, and since when. */
export const lostFactors = async (db: Queryable) => {
  const { rows } = await db.execute<{ id: string; since: string }>(
    sql`select id, factors_ended_at::text as since from ${users} where factors_ended_at is not null`,
  )
  return rows
}

/** One event; all about a user's status or recovery, with the ends of credentials whose owner left; or one credential's end. */
export type Cause = { event_id: string } | { user_id: string } | { credential_id: string }
/** Whether the relay has yet to end the sessions, which it does before it publishes the event, or credential factors. */
export const isUnapplied = async (db: Queryable, of: Cause): Promise<boolean> => {
  if ('user_id' in of && (await getUser(db, of.user_id))?.factors_ended_at) return true
  const these =
    'event_id' in of
      ? eq(outbox.event_id, of.event_id)
      : 'user_id' in of
        ? or(
            and(eq(outbox.agg_type, 'user'), eq(outbox.agg_id, of.user_id)),
            isRecovery(of.user_id),
            endsOwned(of.user_id),
          )
        : sql`${outbox.payload} ->> 'credential_id' = ${of.credential_id}`
  const waiting = and(these, isNull(outbox.published_at), isNull(outbox.js_seq))
  return (await db.select({ id: outbox.event_id }).from(outbox).where(waiting)).length > 0
}

const isRecovery = (user_id: string): SQL =>
  sql`${outbox.type} = 'auth.user.recovery_started.v1' and ${outbox.payload} ->> 'user_id' = ${user_id}`

/** Whether an event ends a credential of a machine that this person owns. */
const endsOwned = (user_id: string): SQL =>
  sql`${outbox.payload} ->> 'credential_id' in (
    select c.id::text from ${machine_credentials} c
    join ${machine_owners} o on o.machine_id = c.machine_id where o.user_id = ${user_id})`

/** Events under that filter, newest first; those of a user include events that name them. An index finds each kind. */
export const listUserEvents = (db: Queryable, { user_id, ...filter }: AuditFilter, limit: number) => {
  const of = (concerns: SQL | undefined) =>
    db
      .select()
      .from(user_events)
      .where(and(concerns, auditMatches(user_events, filter)))
      .orderBy(desc(user_events.id))
      .limit(limit)
  if (user_id === undefined) return of(undefined)
  const [about, naming] = [of(eq(user_events.object, `user:${user_id}`)), of(eq(named_user, user_id))]
  return union(about, naming).orderBy(desc(user_events.id)).limit(limit)
}
