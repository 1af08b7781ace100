import { and, desc, eq, gt, lt, lte, type SQL, sql } from 'drizzle-orm'
import { pick } from '../../apps/shared/data/pick.ts'
import { first, type Queryable, type Tx } from '../client.ts'
import { NOW } from '../rows.ts'
import { type ChangeRow, type ChangeStatus, changes } from './tables.ts'

/** A pending change that no one decided in time is `expired`; no row stores that. */
export type ChangeState = ChangeStatus | 'expired'

const ended = NOW
const inState = (state: ChangeState): SQL | undefined =>
  state === 'pending'
    ? and(eq(changes.status, 'pending'), gt(changes.expires_at, ended))
    : state === 'expired'
      ? and(eq(changes.status, 'pending'), lte(changes.expires_at, ended))
      : eq(changes.status, state)

const columns = {
  ...pick(changes, 'id', 'kind', 'request', 'status', 'subject', 'digest', 'requested_by', 'requested_at'),
  ...pick(changes, 'expires_at', 'decided_by', 'decided_at', 'user_id'),
  state: sql<ChangeState>`case when ${changes.status} = 'pending' and ${changes.expires_at} <= clock_timestamp() then 'expired' else ${changes.status} end`,
}
export type KnownChange = ChangeRow & { state: ChangeState }

export type NewChange = Pick<ChangeRow, 'id' | 'kind' | 'request' | 'subject' | 'digest' | 'requested_by'>

export const insertChange = async (tx: Tx, change: NewChange, ttl_s: number): Promise<KnownChange> => {
  const expires_at = sql`clock_timestamp() + make_interval(secs => ${ttl_s})`
  const [row] = await tx
    .insert(changes)
    .values({ ...change, expires_at })
    .returning(columns)
  if (!row) throw new Error('a change was not written')
  return row
}

/** Changes, newest first, one page before an id. */
export const listChanges = (
  db: Queryable,
  { state, before, limit }: { state: ChangeState | undefined; before: string | undefined; limit: number },
): Promise<KnownChange[]> =>
  db
    .select(columns)
    .from(changes)
    .where(and(state && inState(state), before ? lt(changes.id, before) : undefined))
    .orderBy(desc(changes.id))
    .limit(limit)

/** Locks the change, so that there is one decision at a time. */
export const lockChange = (tx: Tx, id: string): Promise<KnownChange | undefined> =>
  tx.select(columns).from(changes).where(eq(changes.id, id)).for('update').then(first)

/** Decides a change that is still pending. Returns `undefined` if another decision or its expiry came first. */
export const closeChange = (
  tx: Tx,
  id: string,
  set: { status: Exclude<ChangeStatus, 'pending'>; decided_by: string } & Partial<
    Pick<ChangeRow, 'subject' | 'digest' | 'user_id'>
  >,
): Promise<KnownChange | undefined> =>
  tx
    .update(changes)
    .set({ ...set, decided_at: NOW })
    .where(and(eq(changes.id, id), inState('pending')))
    .returning(columns)
    .then(first)
