import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { register } from '../../apps/platform/demo/catalog.ts'
import type { Person } from '../../apps/platform/demo/client.ts'
import { verifyLog } from '../../apps/platform/ops/verify-audit.ts'
import { writeRun } from '../../apps/platform/run/supervisor.ts'
import { secretKeysOf } from '../../apps/shared/config.ts'
import { deriveKey } from '../../apps/shared/data/digest.ts'
import { connectNats, prefixed } from '../../apps/shared/events/events.ts'
import type { Anchor } from '../../db/audit.anchors.ts'
import { createDb } from '../../db/client.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { filesBelow } from './support/installation.ts'
import { runVerb } from './support/verb.ts'

vi.setConfig({ testTimeout: 180_000 })

/** The verbs against a running platform, with the settings that it stored. */
let stack: Stack
let admin: pg.Client
let ada: Person

const ops = async (...args: string[]) => {
  const verb = runVerb('ops', args, { env: { SIGNALBOX_DIR: stack.dir } })
  return { code: await verb.ended, text: verb.text() }
}

beforeAll(async () => {
  stack = await startStack({
    apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'relay', 'gateway'],
    env_overrides: { RELAY__AUDIT__ANCHOR_S: '1' },
  })
  writeRun(stack.dir, { postgres: stack.database_url } as Parameters<typeof writeRun>[1])
  admin = new pg.Client({ connectionString: stack.database_url })
  await admin.connect()
  ada = (await stack.people()).ada
  for (const code of ['r1', 'r2'])
    await register(ada, { resource_id: code, type_key: 'topology.region', name: code, desired_state: { code } })
  await until(async () => (await regions()).length === 2, { what: 'the projection' })
}, 120_000)
afterAll(async () => {
  await admin?.end()
  await stack?.stop()
}, 60_000)

const regions = async (): Promise<{ resource_id: string; name: string }[]> =>
  (await admin.query('select resource_id, name from operations.catalog_resources order by 1')).rows
describe('npm run ops', () => {
  it('reconcile lists operations that the engine does not have, but none that run in another namespace', async () => {
    const id = '01900000-0000-7000-8000-000000000001'
    await admin.query(
      `insert into operations.operations (operation_id, intent_id, plan_id, title, kind, requester, requester_id, starter_id, risk_level,
         labels, plan_hash, constraints, max_parallel, pins, evidence_hash, engine_ref)
       values ($1, $1, $1, 'a lost one', 'graph', '{}', 'u', 'u', 'low', '{}', '', '{}', 1, '{}', '', '{"namespace":"elsewhere"}')`,
      [id],
    )
    await admin.query('insert into operations.operation_control (operation_id) values ($1)', [id])
    await admin.query(
      `insert into operations.operation_commands (command_id, operation_id, seq, kind, class, payload, actor, status)
       values ($1, $1, 1, 'start', 'start', '{}', '{}', 'applied')`,
      [id],
    )
    const apart = await ops('reconcile', '--apply')
    expect(apart).toMatchObject({ code: 1, text: expect.stringContaining('run in the namespace "elsewhere"') })
    await admin.query(`update operations.operations set engine_ref = null where operation_id = $1`, [id])
    const lost = await ops('reconcile')
    expect(lost).toMatchObject({ code: 3, text: expect.stringMatching(/a lost one +queued +gone/) })
    for (const table of ['operations', 'operation_control', 'operation_commands'])
      await admin.query(`delete from operations.${table} where operation_id = $1`, [id])
  })

  it('prints its usage, with exit code 2', async () => {
    for (const args of [[], ['dance'], ['rebuild', '--now']]) {
      const { code, text } = await ops(...args)
      expect(code).toBe(2)
      expect(text).toContain('usage: npm run ops -- <verb>')
    }
  })

  it('is one line if no platform has run', async () => {
    const verb = runVerb('ops', ['verify-audit'], { env: { SIGNALBOX_DIR: '/nowhere' } })
    expect(await verb.ended).toBe(1)
    expect(verb.text()).toBe('RELAY__AUDIT__ANCHOR_FILE is not set, and no platform has run on /nowhere.\n')
  })
})

it('accept-restore says so if the relay holds nothing back', async () => {
  expect(await ops('accept-restore')).toEqual({
    code: 0,
    text: 'The relay holds back no events: no restore of the database was found.\n',
  })
})

it('accept-restore refuses before any change if it cannot write the anchor file', async () => {
  const verb = runVerb('ops', ['accept-restore', '--dry-run'], {
    env: { SIGNALBOX_DIR: stack.dir, RELAY__AUDIT__ANCHOR_FILE: '/nowhere/anchors.jsonl' },
  })
  expect(await verb.ended).toBe(1)
  expect(verb.text()).toContain("The relay's anchor file /nowhere/anchors.jsonl cannot be written here.")
})

describe('dead-letters', () => {
  /** Event type names are checked before an event is applied: an unknown one is poison. */
  const poison = async (agg_id: string) => {
    const { rows } = await admin.query<{ event_id: string; agg_version: string }>(
      `update catalog.outbox set type = 'resource.exploded' where agg_type = 'resource' and agg_id = $1 returning event_id, agg_version`,
      [agg_id],
    )
    return rows[0]?.event_id as string
  }
  const parked = async (agg_id: string): Promise<string> => {
    const event_id = await poison(agg_id)
    await admin.query('delete from operations.catalog_resources where resource_id = $1', [agg_id])
    await admin.query('delete from operations.inbox where event_id = $1', [event_id])
    await admin.query(
      `update operations.projection_version set ver = 0, held = true where agg_type = 'resource' and agg_id = $1`,
      [agg_id],
    )
    await admin.query(
      `insert into operations.dead_letter (consumer, event_id, agg_type, agg_id, agg_version, error, tries)
       values ('catalog', $1, 'resource', $2, 1, 'unknown event type resource.exploded', 5)`,
      [event_id, agg_id],
    )
    return event_id
  }

  it('lists events set aside; requeued, they fail again while the cause remains, and are applied when it is gone', async () => {
    expect(await ops('dead-letters')).toEqual({
      code: 0,
      text: 'No event is set aside, and no message was given up.\n',
    })
    const event_id = await parked('r1')
    const metrics = await (await fetch(`${stack.internal('relay')}/metrics`)).text()
    for (const name of ['signalbox_dead_letters', 'signalbox_held_aggregates'])
      expect(metrics).toMatch(new RegExp(`^${name}\\{consumer="catalog",app="relay"\\} 1$`, 'm'))
    expect(metrics.match(/^signalbox_audit_unsealed_oldest_seconds\{/gm)).toHaveLength(5)
    const listed = await ops('dead-letters', 'list')
    expect(listed.code).toBe(3)
    expect(listed.text).toMatch(
      new RegExp(`${event_id} +operations, consumer catalog +resource r1 v1 .*unknown event type`),
    )

    expect(await ops('dead-letters', 'requeue', event_id)).toMatchObject({ code: 3 })
    expect((await ops('dead-letters')).text).toContain(event_id)

    await admin.query("update catalog.outbox set type = 'resource.created' where event_id = $1", [event_id])
    const again = await ops('dead-letters', 'requeue', event_id)
    expect(again).toEqual({ code: 0, text: `${event_id}: applied, with the events behind it.\n` })
    expect((await regions()).map(({ resource_id }) => resource_id)).toEqual(['r1', 'r2'])
    expect((await ops('dead-letters')).code).toBe(0)
  })

  it('drops an event with a reason in the audit log, and continues behind it', async () => {
    const event_id = await parked('r2')
    const refused = await ops('dead-letters', 'drop', event_id)
    expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('--reason') })
    expect(await ops('dead-letters', 'drop', event_id, '--reason', 'nobody needs it')).toMatchObject({ code: 0 })
    expect((await ops('dead-letters')).code).toBe(0)
    const { rows } = await admin.query(
      "select action, object, reason from operations.audit where action like 'dead_letter.%' order by id desc limit 1",
    )
    expect(rows).toEqual([{ action: 'dead_letter.drop', object: `event:${event_id}`, reason: 'nobody needs it' }])
    await admin.query("update catalog.outbox set type = 'resource.created' where event_id = $1", [event_id])
  })

  it('has in the audit log who requeued or dropped an event that was not published', async () => {
    const { rows } = await admin.query<{ event_id: string }>(
      `update catalog.outbox set parked = 'NATS refuses it', published_at = null
       where agg_type = 'resource' and agg_id = 'r1' returning event_id`,
    )
    const [event_id = ''] = rows.map((row) => row.event_id)
    expect((await ops('dead-letters')).text).toContain(`${event_id}  catalog, not published`)
    expect(await ops('dead-letters', 'requeue', event_id)).toMatchObject({ code: 0 })
    const left = async () =>
      (await admin.query('select 1 from catalog.outbox where event_id = $1 and published_at is null', [event_id]))
        .rowCount
    await until(async () => (await left()) === 0, { what: 'the relay publishes it' })
    await admin.query(`update catalog.outbox set parked = 'again', published_at = null where event_id = $1`, [event_id])
    expect(await ops('dead-letters', 'drop', event_id, '--reason', 'a copy')).toMatchObject({ code: 0 })
    const audited = await admin.query(
      "select action, object, reason from operations.audit where action like 'outbox.%' order by id",
    )
    expect(audited.rows).toEqual([
      { action: 'outbox.requeue', object: `event:${event_id}`, reason: null },
      { action: 'outbox.drop', object: `event:${event_id}`, reason: 'a copy' },
    ])
    expect((await ops('dead-letters')).code).toBe(0)
  })

  it('leaves no audit row of an event of operations whose decision Postgres did not take', async () => {
    const event_id = randomUUID()
    await admin.query(
      `insert into operations.outbox (event_id, agg_type, agg_id, agg_version, type, payload, parked)
       values ($1, 'operation', 'none', 1, 'operation.changed', '{}', 'NATS refuses it')`,
      [event_id],
    )
    await admin.query(
      `create function operations.refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$`,
    )
    await admin.query(`create constraint trigger refuse after update on operations.outbox deferrable initially deferred
      for each row execute function operations.refuse()`)
    expect(await ops('dead-letters', 'drop', event_id, '--reason', 'a copy')).toMatchObject({ code: 1 })
    await admin.query('drop trigger refuse on operations.outbox; drop function operations.refuse()')
    const audited = () => admin.query('select 1 from operations.audit where object = $1', [`event:${event_id}`])
    expect((await audited()).rowCount).toBe(0)
    expect(await ops('dead-letters', 'drop', event_id, '--reason', 'a copy')).toMatchObject({ code: 0 })
    expect((await audited()).rowCount).toBe(1)
  })

  it('accepts only events set aside', async () => {
    const { code, text } = await ops('dead-letters', 'requeue', randomUUID())
    expect(code).toBe(1)
    expect(text).toMatch(/^No event or message .* is set aside/)
  })

  it('lists messages to people that were given up, and sends each again or drops it', async () => {
    const [one, other] = [randomUUID(), randomUUID()]
    for (const id of [one, other])
      await admin.query(
        `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, state, last_error, next_at, ended_at)
         values ($1, $1, 'user:eva', 'test', 'dead', 'It answered 503.', clock_timestamp(), clock_timestamp())`,
        [id],
      )
    const listed = await ops('dead-letters')
    expect(listed.code).toBe(3)
    expect(listed.text).toMatch(new RegExp(`${one} +operations, message +test for user:eva .* It answered 503.`))
    expect(await ops('dead-letters', 'requeue', one)).toEqual({ code: 0, text: `${one}: operations sends it again.\n` })
    expect(await ops('dead-letters', 'requeue', one)).toMatchObject({ code: 1 })
    expect(await ops('dead-letters', 'drop', other)).toMatchObject({ code: 1 })
    expect(await ops('dead-letters', 'drop', other, '--reason', 'too late')).toMatchObject({ code: 0 })
    expect((await ops('dead-letters')).code).toBe(0)
    const { rows } = await admin.query(
      `select d.state, a.action, a.reason from operations.notify_deliveries d
       join operations.audit a on a.object = 'notification:' || d.delivery_id order by a.id`,
    )
    expect(rows).toEqual([
      { state: expect.stringMatching(/queued|obsolete/), action: 'notify.delivery.redeliver', reason: null },
      { state: 'obsolete', action: 'notify.delivery.drop', reason: 'too late' },
    ])
  })
})

describe('rebuild', () => {
  it('names differences, and with --apply makes the projection equal to the catalog', async () => {
    // The event of r2 was dropped above: the projection has a hole.
    const models = await ops('rebuild', 'operations')
    expect([models.code, models.text]).toEqual([0, 'The read models of 0 operations match their events.\n'])
    const found = await ops('rebuild', 'catalog')
    expect(found.code).toBe(3)
    expect(found.text).toMatch(/catalog_resources +1 +2 +1: r2/)
    await admin.query("update operations.catalog_resources set name = 'edited' where resource_id = 'r1'")

    const applied = await ops('rebuild', 'catalog', '--apply')
    expect(applied.text).toContain('Replaced: the projection equals the catalog.')
    expect(applied.code).toBe(0)
    expect(await regions()).toEqual([
      { resource_id: 'r1', name: 'r1' },
      { resource_id: 'r2', name: 'r2' },
    ])
    const equal = await ops('rebuild', 'catalog')
    expect(equal.code).toBe(0)
    expect(equal.text).toMatch(/catalog_resources +2 +2 +none +([0-9a-f]{16}) +\1/)

    await register(ada, { resource_id: 'r3', type_key: 'topology.region', name: 'r3', desired_state: { code: 'r3' } })
    await until(async () => (await regions()).length === 3, { what: 'the projection goes on' })
    const { rowCount } = await admin.query("select 1 from pg_database where datname like 'signalbox_rebuild_%'")
    expect(rowCount).toBe(0)
  })
})

const keysOf = ({ context }: Stack): Buffer[] =>
  secretKeysOf(JSON.parse(context.keys.secretKeys('catalog'))).map((key) => deriveKey(key, 'audit'))

describe('verify-audit', () => {
  const anchor_file = () => join(stack.dir, 'audit-anchors.jsonl')
  const lines = () => readFileSync(anchor_file(), 'utf8').trimEnd().split('\n')
  const LOGS = ['identity.user_events', 'session.auth_events', 'token.key_events', 'catalog.audit', 'operations.audit']
  const sealed = () =>
    until(
      async () => {
        const counts = LOGS.map((log) => `(select count(*) from ${log} where seal_seq is null)`)
        return (await admin.query<{ n: string }>(`select ${counts.join(' + ')} as n`)).rows[0]?.n === '0'
      },
      { what: 'every row sealed' },
    )
  const verdictOf = (text: string, log: string) => text.split('\n').find((line) => line.startsWith(log))

  it('finds every row of every log unchanged, and sealed within seconds', async () => {
    await sealed()
    const { code, text } = await ops('verify-audit')
    expect(text.split('\n').filter((line) => / 0 +0 +as written$/.test(line))).toHaveLength(LOGS.length)
    expect(code).toBe(0)
    expect(Number(verdictOf(text, 'session.auth_events')?.split(/ +/)[1])).toBeGreaterThan(0)

    const away = runVerb('ops', ['verify-audit'], {
      env: { SIGNALBOX_DIR: stack.dir, RELAY__NATS__URL: 'nats://127.0.0.1:9' },
    })
    expect(await away.ended).toBe(1)
    expect(away.text()).toContain('stream AUDIT could not be read: ')

    await admin.query("update operations.audit set reason = 'a better one' where reason = 'nobody needs it'")
    const edited = await ops('verify-audit')
    expect(edited.code).toBe(3)
    expect(verdictOf(edited.text, 'operations.audit')).toMatch(/row \d+: its column reason differs from its body$/)
    expect(verdictOf(edited.text, 'catalog.audit')).toMatch(/as written$/)
    await admin.query("update operations.audit set reason = 'nobody needs it' where reason = 'a better one'")
  })

  it.each<[string, string, RegExp]>([
    [
      'an edited body',
      "update catalog.audit set body = replace(body, 'r1', 'r9') where id = $1",
      /MAC does not fit its body/,
    ],
    [
      'an edited column',
      "update catalog.audit set actor = 'user:nobody' where id = $1",
      /column actor differs from its body/,
    ],
    ['a row taken out', 'delete from catalog.audit where id = $1', /the sealed row number \d+ before it is missing/],
    [
      'a row moved',
      'update catalog.audit set seal_seq = 1000000 + seal_seq where id = $1',
      /the sealed row number \d+ before it is missing/,
    ],
    ['a seal made up', "update catalog.audit set seal_hash = repeat('a', 64) where id = $1", /seal does not fit it/],
  ])(
    'names the row of %s',
    async (_what, tamper, words) => {
      await sealed()
      await admin.query('create temp table kept as select * from catalog.audit order by seal_seq limit 1')
      const { rows } = await admin.query<{ id: string }>('select id from kept')
      const id = rows[0]?.id
      await admin.query(tamper, [id])
      const { db, close } = createDb(stack.database_url, { app: 'test' })
      const verdict = await verifyLog(db, 'catalog.audit', keysOf(stack)).finally(close)
      expect(verdict.fault).toMatch(words)
      await admin.query('delete from catalog.audit where id = $1', [id])
      await admin.query('insert into catalog.audit overriding system value select * from kept')
      await admin.query('drop table kept')
    },
    30_000,
  )

  /** Waits until the end of the catalog's log is anchored, tampers with it, and restores its last row. */
  const afterAnchored = async (
    tamper: string,
    env: Record<string, string> = {},
  ): Promise<{ code: number | null; text: string }> => {
    await sealed()
    const { rows } = await admin.query<{ seal_seq: string }>(
      'select max(seal_seq)::text as seal_seq from catalog.audit',
    )
    const isAnchored = () =>
      lines().some((line) =>
        (JSON.parse(JSON.parse(line).body) as Anchor).heads.some(
          ({ log, seal_seq }) => log === 'catalog.audit' && seal_seq === rows[0]?.seal_seq,
        ),
      )
    await until(async () => isAnchored(), { what: 'the anchor' })
    await admin.query('create temp table kept as select * from catalog.audit order by seal_seq desc limit 1')
    await admin.query('delete from catalog.audit where id = (select id from kept)')
    await admin.query(tamper)
    const verb = runVerb('ops', ['verify-audit'], { env: { SIGNALBOX_DIR: stack.dir, ...env } })
    const said = { code: await verb.ended, text: verb.text() }
    await admin.query('delete from catalog.audit where id = (select id from kept)')
    await admin.query('insert into catalog.audit overriding system value select * from kept')
    await admin.query('drop table kept')
    return said
  }

  it('names a cut tail, which the rest of the log cannot show', async () => {
    const { code, text } = await afterAnchored('select 1')
    expect(code).toBe(3)
    expect(verdictOf(text, 'catalog.audit')).toMatch(/the log ends before row number \d+, which was anchored at 2/)
  })

  it('names a replaced last row, sealed as the chain requires', async () => {
    const { code, text } = await afterAnchored(`
      insert into catalog.audit overriding system value
      select k.id, a.at, a.actor, a.on_behalf_of, a.roles, a.action, a.object, a.outcome, a.reason, a.before_hash, a.after_hash,
        a.request_id, a.command_id, a.body, a.mac, k.seal_seq, k.prev_hash,
        encode(sha256(convert_to(k.prev_hash || '|' || k.seal_seq || '|' || a.mac || '|' || k.id, 'UTF8')), 'hex')
      from kept k, (select * from catalog.audit order by id limit 1) a`)
    expect(code).toBe(3)
    expect(verdictOf(text, 'catalog.audit')).toMatch(/row \d+: it is a copy of row \d+/)
  })

  it('names an anchor that was not signed by the relay', async () => {
    const forged = join(stack.dir, 'forged.jsonl')
    writeFileSync(forged, lines().join('\n').replace('.', ','))
    const verb = runVerb('ops', ['verify-audit'], {
      env: { SIGNALBOX_DIR: stack.dir, RELAY__AUDIT__ANCHOR_FILE: forged },
    })
    expect(await verb.ended).toBe(3)
    expect(verb.text()).toContain('line 1: this anchor was not signed by the key of the relay')
  })

  it('takes a line that was cut off for no forgery, and reads those after it', async () => {
    const torn = join(stack.dir, 'torn.jsonl')
    const [first = '', ...rest] = lines()
    writeFileSync(torn, [first.slice(0, -9), ...rest].join('\n'))
    const verb = runVerb('ops', ['verify-audit'], {
      env: { SIGNALBOX_DIR: stack.dir, RELAY__AUDIT__ANCHOR_FILE: torn },
    })
    await verb.ended
    expect(verb.text()).not.toContain('not signed')
    expect(verb.text()).toContain(`${torn}, line 1: it was cut off as it was written`)
    expect(verb.text()).toContain(`anchors in ${torn}: ${rest.length}, `)
  })

  it('reads their copies in stream AUDIT: a tail cut in the log and in the file is missed there', async () => {
    const { code, text } = await afterAnchored('select 1', { RELAY__AUDIT__ANCHOR_FILE: '/nowhere' })
    expect(code).toBe(3)
    expect(text).toContain('no anchor file /nowhere: ')
    expect(text).toMatch(/anchors in stream AUDIT: [1-9]\d*, the last at 2/)
    expect(verdictOf(text, 'catalog.audit')).toMatch(/the log ends before row number \d+, which was anchored at 2/)
  })

  it('takes a file that is not there for a finding in production: it has anchors somewhere', async () => {
    await sealed()
    const code = (env: Record<string, string>) =>
      runVerb('ops', ['verify-audit'], {
        env: { SIGNALBOX_DIR: stack.dir, RELAY__AUDIT__ANCHOR_FILE: '/nowhere', ...env },
      }).ended
    expect(await code({})).toBe(0)
    expect(await code({ NODE_ENV: 'production' })).toBe(3)
  })

  it('names a copy there that was not signed by the relay', async () => {
    const nc = await connectNats(process.env.NATS_URL ?? '', 'test')
    await nc
      .jetstream()
      .publish(prefixed(stack.context.prefix.nats, 'audit.anchor'), lines()[0]?.replace('.', ',') ?? '')
    await nc.close()
    const { code, text } = await ops('verify-audit')
    expect(text).toMatch(/stream AUDIT, anchor \d+: this anchor was not signed by the key of the relay/)
    expect(code).toBe(3)
  })
})

describe('a support bundle', () => {
  const PLANTED = 'planted-line-5521'
  /** Every leaf of the secrets, and the private parts of all keys. */
  const secrets = (): string[] => {
    const leaves = (value: unknown): string[] =>
      typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(leaves)
    const keys = join(stack.dir, 'keys')
    const privates = readdirSync(keys)
      .filter((file) => file.endsWith('.json') && !/^(secrets|services)/.test(file))
      .map((file) => JSON.parse(readFileSync(join(keys, file), 'utf8')).d)
    return [...leaves(JSON.parse(readFileSync(join(keys, 'secrets.json'), 'utf8'))), ...privates].filter(Boolean)
  }
  const pack = async (...args: string[]) => {
    const to = join(stack.dir, 'bundle.tgz')
    const { code, text } = await ops('support-bundle', '--to', to, ...args)
    expect([text, code]).toEqual([expect.stringContaining('Read it before you send it'), 0])
    execFileSync('tar', ['-xzf', to, '-C', stack.dir])
    const files = filesBelow(join(stack.dir, 'bundle'))
    return new Map(files.map((file) => [relative(join(stack.dir, 'bundle'), file), readFileSync(file, 'utf8')]))
  }

  it('has useful data, and no secret from anywhere', async () => {
    const line = (ago_ms: number) =>
      JSON.stringify({
        time: new Date(Date.now() - ago_ms).toISOString(),
        msg: PLANTED,
        ago_ms,
        all: secrets().join(' '),
      })
    appendFileSync(join(stack.dir, 'logs/catalog.log'), `${line(3 * 3_600_000)}\n${line(60_000)}\n`)
    // What people wrote stays behind; an error of another system may name its secret.
    const operation_id = randomUUID()
    await admin.query(
      `insert into operations.operation_commands (command_id, operation_id, seq, kind, class, payload, actor, status, reason, last_error)
       values ($1, $2, 1, 'pause', 'stop', '{"password": "planted-input"}', '{"name": "planted-name"}', 'refused', 'planted-comment', 'no: Bearer planted-token')`,
      [randomUUID(), operation_id],
    )
    const files = await pack('--operation', operation_id)
    expect(files.get('operation/commands.json')).toContain('no: Bearer •••')
    for (const [file, text] of files)
      expect([file, text]).not.toEqual([file, expect.stringMatching(/planted-(?!line)/)])
    expect(JSON.parse(files.get('versions.json') ?? '')).toMatchObject({ node: process.versions.node })
    expect(JSON.parse(files.get('catalog/health.json') ?? '')).toMatchObject({ status: 'ready' })
    expect(files.get('catalog/metrics.txt')).toContain('signalbox_build_info')
    expect(JSON.parse(files.get('settings/token.json') ?? '')).toMatchObject({ TOKEN__KEYS__KEK: '•••' })
    expect(files.get('operation/nodes.json')).toBe('[]\n')
    expect(files.get('operation/history.json')).toContain('no history')
    const log = files.get('catalog/log.jsonl') ?? ''
    expect(log.match(new RegExp(PLANTED, 'g'))).toHaveLength(1)
    expect(secrets().length).toBeGreaterThan(20)
    for (const [file, text] of files) for (const secret of secrets()) expect(text.includes(secret), file).toBe(false)
  })

  it('names the fault of a folder or a time', async () => {
    expect(await ops('support-bundle', '--env', '/nowhere')).toMatchObject({
      code: 1,
      text: expect.stringContaining('--env'),
    })
    expect(await ops('support-bundle', '--hours', 'all')).toMatchObject({
      code: 1,
      text: expect.stringContaining('--hours'),
    })
  })
})
