import type pg from 'pg'
import { ADMINISTRATORS, type SecurityFact } from '../../../db/operations/tables/index.ts'

type Row = { place: string; at: Date; action: string; object: string; body: Record<string, unknown> }
type Told = { user_id: string; fact: SecurityFact }

const BATCH = 200

/** Identity's actions whose object is the affected account. */
const ACCOUNT: Record<string, SecurityFact['event']> = {
  'user.enrolled': 'password.changed',
  'user.enrolment_created': 'account.reset',
  'user.recovery_started': 'account.recovery',
  'user.passkey_added': 'passkey.added',
  'user.passkey_removed': 'passkey.removed',
  'user.passkey_cloned': 'passkey.cloned',
  'user.identity_linked': 'provider.linked',
  'user.identity_unlinked': 'provider.unlinked',
  'machine.credential_ending': 'key.ending',
  'machine.credential_seen': 'key.seen',
  'machine.credential_unused': 'key.unused',
}

/** A session's actions on its own account. */
const OWN: Record<string, SecurityFact['event']> = {
  change_password: 'password.changed',
  set_totp: 'totp.added',
  remove_totp: 'totp.removed',
  totp_locked: 'totp.locked',
}

const eventOf = ({ action, body }: Row): SecurityFact['event'] | undefined => {
  const { device, closed } = (body.details ?? {}) as { device?: string; closed?: boolean }
  if (action === 'login' && closed) return 'name.closed'
  if (body.outcome !== 'done') return undefined
  if (action === 'login') return device === 'new' ? 'device.new' : undefined
  return OWN[action] ?? ACCOUNT[action]
}

const ofAccount = (row: Row): Told[] => {
  const event = eventOf(row)
  const { ip_address, user_agent } = row.body as Pick<SecurityFact, 'ip_address' | 'user_agent'>
  const from = { at: row.at.toISOString(), ...(ip_address && { ip_address }), ...(user_agent && { user_agent }) }
  const all = ofInstallation(row).map((fact) => ({ user_id: ADMINISTRATORS, fact: { ...from, ...fact } }))
  const { resets } = (row.body.details ?? {}) as { resets?: string }
  if (row.action === 'change.requested' && row.body.outcome === 'done' && resets)
    return [{ user_id: resets, fact: { event: 'account.reset_requested', ...from } }, ...all]
  if (!event || !row.object.startsWith('user:')) return all
  const about = event.startsWith('key.') && { about: String(row.body.reason) }
  return [{ user_id: row.object.slice('user:'.length), fact: { event, ...from, ...about } }, ...all]
}

/** Every administrator hears of the use of an emergency account, of guessed passwords, and of changes that wait. */
const ofInstallation = ({ action, body }: Row): Pick<SecurityFact, 'event' | 'about'>[] => {
  const { break_glass, network, subject } = (body.details ?? {}) as Record<string, string | undefined>
  if (action === 'login' && body.outcome === 'done' && break_glass)
    return [{ event: 'break_glass.used', about: break_glass }]
  if (action === 'change.requested' && body.outcome === 'done' && subject)
    return [{ event: 'change.waiting', about: `${String(body.reason)}: ${subject}` }]
  return action === 'spray_suspected' && network ? [{ event: 'spray.suspected', about: network }] : []
}

/** An audit row has neither the members of a group nor the subject of a grant; the event of the change has them. */
const ofRights = ({ at, action, body }: Row): Told[] =>
  action === 'auth.user.roles_changed.v1' && Array.isArray(body.user_ids)
    ? body.user_ids.map((user_id) => ({ user_id, fact: { event: 'rights.changed', at: at.toISOString() } }))
    : []

const SOURCES = [
  { table: 'session.auth_events', place: 'seal_seq', columns: 'at, action, object, body::jsonb', read: ofAccount },
  { table: 'identity.user_events', place: 'seal_seq', columns: 'at, action, object, body::jsonb', read: ofAccount },
  {
    table: 'identity.outbox',
    place: 'pub_seq',
    columns: `occurred_at as at, type as action, '' as object, payload as body`,
    read: ofRights,
  },
] as const

/**
 * Passes facts that people must hear about their accounts to the notifier, from the logs in which their apps record
 * them, in each log's order. The position moves in the transaction that adds the facts, so each is added once. It
 * begins at the end of the logs, so that an upgrade reports no past facts. Runs one turn; true if there may be more.
 */
export const followSecurity = async (pool: pg.Pool): Promise<boolean> => {
  let more = false
  for (const source of SOURCES) more = (await follow(pool, source)) || more
  return more
}

const follow = async (pool: pg.Pool, { table, place, columns, read }: (typeof SOURCES)[number]): Promise<boolean> => {
  const name = `security ${table}`
  const begun = await pool.query<{ next: string }>('select next from operations.relay_state where name = $1', [name])
  const next = begun.rows[0]?.next
  if (next === undefined) {
    await pool.query(
      `insert into operations.relay_state (name, next) select $1, coalesce(max(${place}), 0) + 1 from ${table}
       on conflict do nothing`,
      [name],
    )
    return false
  }
  const { rows } = await pool.query<Row>(
    `select ${place}::text as place, ${columns} from ${table} where ${place} >= $1 order by ${table}.${place} limit ${BATCH}`,
    [next],
  )
  if (rows.length === 0) return false
  const told = rows.flatMap((row) => read(row).map((one) => ({ ...one, key: `${table} ${row.place} ${one.user_id}` })))
  await pool.query(
    `with moved as (update operations.relay_state set next = $3 where name = $1 and next = $2 returning name)
     insert into operations.notify_security (key, user_id, fact)
     select key, user_id, fact from moved, jsonb_to_recordset($4::jsonb) as told (key text, user_id text, fact jsonb)`,
    [name, next, String(BigInt(rows.at(-1)?.place ?? 0) + 1n), JSON.stringify(told)],
  )
  return rows.length === BATCH
}
