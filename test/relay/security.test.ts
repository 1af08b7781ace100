import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sealAudit } from '../../apps/relay/audit/seal.ts'
import { followSecurity } from '../../apps/relay/audit/security.ts'
import { storeAudit } from '../../apps/relay/revocations.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { type AuditTable, appendAuditTo, signAudit } from '../../db/audit.ts'
import { createDb } from '../../db/client.ts'
import { user_events } from '../../db/identity/tables.ts'
import { testDatabase } from '../support/database.ts'

/** The rows that identity and session write, and which of them people are notified about. */
const KEY = Buffer.alloc(32, 7)
let database: Awaited<ReturnType<typeof testDatabase>>
let opened: ReturnType<typeof createDb>
beforeAll(async () => {
  database = await testDatabase('identity', 'session', 'token', 'catalog', 'operations')
  opened = createDb(database.url, { app: 'test' })
})
afterAll(async () => {
  await opened.close()
  await database.drop()
})
beforeEach(async () => {
  await opened.pool.query(`delete from operations.relay_state where name like 'security %'`)
  await opened.pool.query('delete from operations.notify_security')
  await followSecurity(opened.pool)
})

const byIdentity = (
  action: string,
  object: string,
  outcome: 'done' | 'denied' = 'done',
  reason: string | null = null,
  details?: Record<string, unknown>,
) =>
  opened.db.transaction((tx) =>
    appendAuditTo(tx, user_events as AuditTable, KEY, {
      actor: 'user:ada',
      action,
      object,
      outcome,
      reason: reason ?? null,
      details,
    }),
  )
const bySession = (action: string, details?: object, outcome = 'done') => {
  const row = {
    event_id: uuidv7(),
    at: new Date().toISOString(),
    actor: 'user:eva',
    action,
    object: 'user:eva',
    outcome,
  }
  const more = { ip_address: '192.0.2.7', user_agent: 'signalbox-cli/1', ...(details && { details }) }
  return storeAudit(opened.pool, { ...row, ...signAudit('session.auth_events', KEY, { ...row, ...more }) })
}
let number = 0
const rightsChanged = (user_ids: string[]) => {
  number += 1
  return opened.pool.query(
    `insert into identity.outbox (event_id, agg_type, agg_id, agg_version, type, payload, pub_seq)
     values ($1, 'users', $4, 1, 'auth.user.roles_changed.v1', $2, $3)`,
    [uuidv7(), { user_ids }, number, `part ${number}`],
  )
}
const told = async () => {
  const { rows } = await opened.pool.query('select user_id, fact from operations.notify_security order by key')
  return rows.map(({ user_id, fact }) => `${user_id} ${fact.event}`).sort()
}
const follow = async (times = 1) => {
  while (await sealAudit(opened.pool));
  // Connections that are already open make it a race.
  await Promise.all(Array.from({ length: times }, () => opened.pool.query('select pg_sleep(0.05)')))
  await Promise.all(Array.from({ length: times }, () => followSecurity(opened.pool)))
}

describe('a security event of an account', () => {
  it('covers resets, recoveries, passkeys, links and rights', async () => {
    await byIdentity('user.enrolment_created', 'user:olga')
    await byIdentity('user.recovery_started', 'user:olga')
    await byIdentity('user.passkey_added', 'user:olga')
    await byIdentity('user.passkey_removed', 'user:olga')
    await byIdentity('user.identity_linked', 'user:olga')
    await byIdentity('user.enrolled', 'user:olga')
    await rightsChanged(['olga', 'ivo'])
    await follow()
    const olga = ['reset', 'recovery'].map((one) => `account.${one}`)
    const more = ['passkey.added', 'passkey.removed', 'password.changed', 'provider.linked', 'rights.changed']
    expect(await told()).toEqual([...[...olga, ...more].map((one) => `olga ${one}`), 'ivo rights.changed'].sort())
  })

  it('covers the end of a credential, for all who own its machine', async () => {
    const reason = 'machine:ci, key deploy, until 2026-12-10T00:00:00.000Z'
    for (const object of ['user:olga', 'user:ada'])
      await byIdentity('machine.credential_ending', object, 'done', reason)
    await follow(2)
    expect(await told()).toEqual(['ada key.ending', 'olga key.ending'])
    const { rows } = await opened.pool.query('select fact from operations.notify_security')
    for (const { fact } of rows) expect(fact.about).toBe(reason)
  })

  it('covers a credential that no one uses', async () => {
    await byIdentity('machine.credential_unused', 'user:ada', 'done', 'machine:ci, key deploy')
    await follow()
    expect(await told()).toEqual(['ada key.unused'])
  })

  it('covers a credential that someone who left has seen, for those who answer for its machine', async () => {
    const reason = 'machine:ci, key deploy; olga left'
    await byIdentity('machine.credential_seen', 'user:ada', 'done', reason)
    await follow()
    expect(await told()).toEqual(['ada key.seen'])
    const { rows } = await opened.pool.query(`select fact->>'about' as about from operations.notify_security`)
    expect(rows).toEqual([{ about: reason }])
  })

  it('covers a sign-in from a new device, with its address, and a new password; not one from a known device', async () => {
    await bySession('login', { device: 'known' })
    await bySession('login', { provider: 'company' })
    await bySession('login', { device: 'new' }, 'denied')
    await bySession('reauth')
    await follow()
    expect(await told()).toEqual([])
    await bySession('login', { device: 'new' })
    await bySession('change_password')
    for (const action of ['set_totp', 'remove_totp', 'totp_locked']) await bySession(action)
    await follow()
    const app = ['added', 'locked', 'removed'].map((what) => `eva totp.${what}`)
    expect(await told()).toEqual(['eva device.new', 'eva password.changed', ...app])
    const { rows } = await opened.pool.query(
      `select fact from operations.notify_security where fact->>'event' = 'device.new'`,
    )
    expect(rows[0].fact).toMatchObject({ ip_address: '192.0.2.7', user_agent: 'signalbox-cli/1' })
  })

  it('covers a name that guesses have closed, and a passkey of which a copy may exist', async () => {
    await bySession('login', { failures: 9, locked_until: null }, 'denied')
    await follow()
    expect(await told()).toEqual([])
    await bySession('login', { failures: 100, closed: true }, 'denied')
    await byIdentity('user.passkey_cloned', 'user:eva')
    await follow(2)
    expect(await told()).toEqual(['eva name.closed', 'eva passkey.cloned'])
  })

  it('covers, for all administrators, the use of an emergency account and password spraying by a network', async () => {
    const used = { device: 'known', break_glass: 'ida' }
    await bySession('login', used, 'denied')
    await bySession('login', used)
    await bySession('spray_suspected', { network: '192.0.2.0/24' }, 'noted')
    await follow(2)
    expect(await told()).toEqual(['administrators break_glass.used', 'administrators spray.suspected'])
    const { rows } = await opened.pool.query(`select fact->>'about' as about from operations.notify_security`)
    expect(rows.map(({ about }) => about).sort()).toEqual(['192.0.2.0/24', 'ida'])
  })

  it('covers a change that waits for a second administrator, and for its person a reset', async () => {
    const request = (kind: string, details: object, outcome: 'done' | 'denied' = 'done') =>
      byIdentity('change.requested', 'change:1', outcome, kind, { ...details })
    await request('user.recover', { subject: 'olga', resets: 'olga-id' })
    await request('grant.create', { subject: 'netops' })
    await request('user.reset', { subject: 'olga', resets: 'olga-id' }, 'denied')
    await follow()
    const { rows } = await opened.pool.query('select user_id, fact from operations.notify_security')
    const said = rows.map(({ user_id, fact }) => [user_id, fact.event, fact.about].join(' ').trim())
    expect(said.sort()).toEqual([
      'administrators change.waiting grant.create: netops',
      'administrators change.waiting user.recover: olga',
      'olga-id account.reset_requested',
    ])
  })

  it('excludes refusals, and events without an account', async () => {
    await byIdentity('user.passkey_added', 'user:olga', 'denied')
    await byIdentity('group.created', 'group:netops')
    await rightsChanged([])
    await follow()
    expect(await told()).toEqual([])
  })

  it('is added once, by however many relays at once, and not again after the notifier took it', async () => {
    for (let i = 0; i < 20; i++) await byIdentity('user.passkey_added', 'user:olga')
    await follow(5)
    expect(await told()).toHaveLength(20)
    await opened.pool.query('delete from operations.notify_security')
    await follow(5)
    expect(await told()).toEqual([])
  })

  it('starts at the end of the logs: no one is told of the past', async () => {
    await byIdentity('user.passkey_added', 'user:olga')
    while (await sealAudit(opened.pool));
    await opened.pool.query(`delete from operations.relay_state where name like 'security %'`)
    await follow()
    await follow()
    expect(await told()).toEqual([])
  })
})
