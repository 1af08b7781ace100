import { and, asc, eq, gt, inArray, isNull, lt, ne, not, or, sql } from 'drizzle-orm'
import { pick } from '../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { pruneRows } from '../prune.ts'
import { NOW } from '../rows.ts'
import { type MachineCredentialRow, machine_assertions, machine_credentials, machine_owners, users } from './tables.ts'

const live = and(isNull(machine_credentials.revoked_at), gt(machine_credentials.expires_at, NOW))

/** Whether an active owner is responsible for the machine of the row. */
const owned = sql<boolean>`exists (select 1 from ${machine_owners} o join ${users} p on p.id = o.user_id
  where o.machine_id = ${users.id} and p.status = 'ACTIVE')`

/** People responsible for machines: owners, and who made or confirmed a credential valid within the last month. */
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

/** The valid credentials of machines that this person owns, and no active person does. */
export const orphanedBy = (tx: Tx, user_id: string) =>
  tx
    .select({ id: machine_credentials.id, machine_id: machine_credentials.machine_id })
    .from(machine_owners)
    .innerJoin(users, eq(users.id, machine_owners.machine_id))
    .innerJoin(machine_credentials, and(eq(machine_credentials.machine_id, users.id), live))
    .where(and(eq(machine_owners.user_id, user_id), not(owned)))

/** The valid secrets of machines that this person owns, or that were shown to them. */
export const secretsSeenBy = (tx: Tx, user_id: string) =>
  tx
    .select({ ...pick(machine_credentials, 'machine_id', 'name', 'kind'), username: users.username })
    .from(machine_credentials)
    .innerJoin(users, eq(users.id, machine_credentials.machine_id))
    .where(
      and(
        live,
        ne(machine_credentials.kind, 'trust'),
        or(
          eq(machine_credentials.created_by, `user:${user_id}`),
          sql`exists (select 1 from ${machine_owners} o where o.machine_id = ${users.id} and o.user_id = ${user_id})`,
        ),
      ),
    )
    .orderBy(asc(machine_credentials.id))

type Listing = { id?: string | undefined; owner_id?: string | undefined; after?: string | undefined; limit?: number }

/** Machines by name, one page after a name; of all or of one owner. */
export const listMachines = (db: Queryable, { id, owner_id, after, limit = 1 }: Listing) =>
  db
    .select()
    .from(users)
    .where(
      and(
        equals(users, { kind: 'machine', ...(id !== undefined && { id }) }),
        owner_id === undefined
          ? undefined
          : sql`exists (select from ${machine_owners} o where o.machine_id = ${users.id} and o.user_id = ${owner_id})`,
        after === undefined ? undefined : gt(users.username, after),
      ),
    )
    .orderBy(asc(users.username))
    .limit(limit)

export const credentialsOf = async (db: Queryable, machine_ids: string[]): Promise<MachineCredentialRow[]> =>
  machine_ids.length === 0
    ? []
    : db
        .select()
        .from(machine_credentials)
        .where(inArray(machine_credentials.machine_id, machine_ids))
        .orderBy(asc(machine_credentials.id))

/** Locks the credential if it belongs to this machine. */
export const lockCredential = (tx: Tx, machine_id: string, id: string) =>
  tx.select().from(machine_credentials).where(equals(machine_credentials, { id, machine_id })).for('update').then(first)

const proofs = { user: users, credential: machine_credentials, owned }

/** A credential with its machine, and whether it has an active owner. */
export const credentialById = (db: Queryable, id: string) =>
  db
    .select(proofs)
    .from(machine_credentials)
    .innerJoin(users, eq(users.id, machine_credentials.machine_id))
    .where(eq(machine_credentials.id, id))
    .then(first)

/** The valid credentials of one kind for the machine of this name; one row without a credential if it has none. */
export const liveCredentials = (db: Queryable, folded: string, kind: MachineCredentialRow['kind']) =>
  db
    .select(proofs)
    .from(users)
    .leftJoin(
      machine_credentials,
      and(eq(machine_credentials.machine_id, users.id), eq(machine_credentials.kind, kind), live),
    )
    .where(equals(users, { folded, kind: 'machine' }))

const ofActive = (tx: Tx) =>
  inArray(machine_credentials.machine_id, tx.select({ id: users.id }).from(users).where(eq(users.status, 'ACTIVE')))

/** Credentials of active machines that expire within this time, locked for the first process that records it. */
export const lockEnding = (tx: Tx, now: Date, until: Date): Promise<MachineCredentialRow[]> =>
  tx
    .select()
    .from(machine_credentials)
    .where(
      and(
        ofActive(tx),
        isNull(machine_credentials.revoked_at),
        gt(machine_credentials.expires_at, now.toISOString()),
        lt(machine_credentials.expires_at, until.toISOString()),
      ),
    )
    .for('update', { skipLocked: true })

/** In place of the count of notices (`told`): a rotation intends the end, so no notice is needed. */
export const ROTATED = 99

const idle_since = sql`coalesce(${machine_credentials.last_used_at}, ${machine_credentials.created_at})`

/**
 * Valid credentials of active machines that were last used, or made, before this, and of which no one was told since; none
 * that a rotation ends.
 */
export const lockUnused = (tx: Tx, now: Date, before: Date, limit: number): Promise<MachineCredentialRow[]> =>
  tx
    .select()
    .from(machine_credentials)
    .where(
      and(
        ofActive(tx),
        isNull(machine_credentials.revoked_at),
        gt(machine_credentials.expires_at, now.toISOString()),
        ne(machine_credentials.told, ROTATED),
        sql`${idle_since} <= ${before.toISOString()}`,
        sql`coalesce(${machine_credentials.unused_told_at} < ${idle_since}, true)`,
      ),
    )
    .orderBy(asc(machine_credentials.id))
    .limit(limit)
    .for('update', { skipLocked: true })

/** Machines marked for a credential of one administrator, of which none is still valid. */
export const markedForExpired = (db: Queryable, now: Date) =>
  db
    .select({ id: users.id })
    .from(users)
    .where(
      and(
        equals(users, { kind: 'machine', link_shown: true }),
        sql`not exists (select 1 from ${machine_credentials} c where c.machine_id = ${users.id} and c.confirmed_by is null
          and c.revoked_at is null and c.expires_at > ${now.toISOString()})`,
      ),
    )

/** The valid credentials of one kind by the database's clock, with the keys of those that have one. */
export const liveOf = (db: Queryable, machine_id: string, kind: MachineCredentialRow['kind']) =>
  db
    .select(pick(machine_credentials, 'id', 'jwk'))
    .from(machine_credentials)
    .where(and(equals(machine_credentials, { machine_id, kind }), live))

/** Spends an assertion. Returns false if it was already used. */
export const spendAssertion = async (db: Queryable, row: typeof machine_assertions.$inferInsert): Promise<boolean> =>
  (await db.insert(machine_assertions).values(row).onConflictDoNothing().returning()).length > 0

export const pruneAssertions = (db: Parameters<typeof pruneRows>[0]) =>
  pruneRows(db, machine_assertions, 'expires_at', sql`now()`)

/** Records the use of a credential. */
export const noteUse = (db: Queryable, id: string, last_address: string | null) =>
  db.update(machine_credentials).set({ last_used_at: NOW, last_address }).where(eq(machine_credentials.id, id))
