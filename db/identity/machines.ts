import { and, asc, count, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { pruneRows } from '../prune.ts'
import { type MachineCredentialRow, machine_assertions, machine_credentials, machine_owners, users } from './tables.ts'

/** Who answers for these machines: owners, and who made or confirmed a credential that lives or ended in the last month. */
export const behindMachines = async (db: Queryable, machine_ids: string[]) => {
  if (machine_ids.length === 0) return []
  const { rows } = await db.execute<{ machine_id: string; by: string }>(sql`
    select machine_id::text, user_id::text as by from ${machine_owners} where machine_id = any(${sql.param(machine_ids)}::uuid[])
    union
    select c.machine_id::text, v.by from ${machine_credentials} c cross join lateral (values (c.created_by), (c.confirmed_by)) as v(by)
    where c.machine_id = any(${sql.param(machine_ids)}::uuid[]) and v.by like 'user:%'
      and coalesce(c.revoked_at, c.expires_at) > clock_timestamp() - interval '30 days'
    order by 1, 2`)
  return rows
}

export const ownersOf = async (db: Queryable, machine_ids: string[]) =>
  machine_ids.length === 0
    ? []
    : db
        .select({
          machine_id: machine_owners.machine_id,
          user_id: users.id,
          username: users.username,
          status: users.status,
        })
        .from(machine_owners)
        .innerJoin(users, eq(users.id, machine_owners.user_id))
        .where(inArray(machine_owners.machine_id, machine_ids))
        .orderBy(asc(users.username))

/** Machines by name, one page after a name. */
export const listMachines = (db: Queryable, { after, limit }: { after: string | undefined; limit: number }) =>
  db
    .select()
    .from(users)
    .where(and(eq(users.kind, 'machine'), after === undefined ? undefined : gt(users.username, after)))
    .orderBy(asc(users.username))
    .limit(limit)

const live = and(isNull(machine_credentials.revoked_at), gt(machine_credentials.expires_at, sql`clock_timestamp()`))

export const credentialsOf = async (db: Queryable, machine_ids: string[]): Promise<MachineCredentialRow[]> =>
  machine_ids.length === 0
    ? []
    : db
        .select()
        .from(machine_credentials)
        .where(inArray(machine_credentials.machine_id, machine_ids))
        .orderBy(asc(machine_credentials.id))

export const getCredential = (db: Queryable, id: string) =>
  db.select().from(machine_credentials).where(eq(machine_credentials.id, id)).then(first)

/** The credential, locked, if it is one of this machine. */
export const lockCredential = (tx: Tx, machine_id: string, id: string) =>
  tx.select().from(machine_credentials).where(equals(machine_credentials, { id, machine_id })).for('update').then(first)

/** What can prove this machine now, of one kind. */
export const liveCredentials = (db: Queryable, machine_id: string, kind: MachineCredentialRow['kind']) =>
  db
    .select()
    .from(machine_credentials)
    .where(and(equals(machine_credentials, { machine_id, kind }), live))

/** Credentials of active machines that end within this time, locked for whoever notes it first. */
export const lockEnding = (tx: Tx, now: Date, until: Date): Promise<MachineCredentialRow[]> =>
  tx
    .select()
    .from(machine_credentials)
    .where(
      and(
        inArray(
          machine_credentials.machine_id,
          tx.select({ id: users.id }).from(users).where(eq(users.status, 'ACTIVE')),
        ),
        isNull(machine_credentials.revoked_at),
        gt(machine_credentials.expires_at, now.toISOString()),
        lt(machine_credentials.expires_at, until.toISOString()),
      ),
    )
    .for('update', { skipLocked: true })

export const countLive = (db: Queryable, machine_id: string, kind: MachineCredentialRow['kind']): Promise<number> =>
  db
    .select({ n: count() })
    .from(machine_credentials)
    .where(and(equals(machine_credentials, { machine_id, kind }), live))
    .then((rows) => rows[0]?.n ?? 0)

/** Spends an assertion. False: it was used before. */
export const spendAssertion = async (db: Queryable, row: typeof machine_assertions.$inferInsert): Promise<boolean> =>
  (await db.insert(machine_assertions).values(row).onConflictDoNothing().returning()).length > 0

export const pruneAssertions = (db: Parameters<typeof pruneRows>[0]) =>
  pruneRows(db, machine_assertions, sql`expires_at < clock_timestamp()`)

const NOTE_S = 60
/** Notes the use of a credential, once a minute. */
export const noteUse = (db: Queryable, id: string, address: string | null) =>
  db
    .update(machine_credentials)
    .set({ last_used_at: sql`clock_timestamp()` as never, last_address: address })
    .where(
      and(
        eq(machine_credentials.id, id),
        or(
          isNull(machine_credentials.last_used_at),
          lt(machine_credentials.last_used_at, sql`clock_timestamp() - make_interval(secs => ${NOTE_S})`),
        ),
      ),
    )
