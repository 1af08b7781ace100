import { generateKeyPairSync } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recordAudit } from '../../apps/catalog/command/outbox.ts'
import { verifyLog } from '../../apps/platform/ops/verify-audit.ts'
import { appendAnchor, createAnchors, readHeads } from '../../apps/relay/audit/anchors.ts'
import { sealAudit } from '../../apps/relay/audit/seal.ts'
import { storeAudit } from '../../apps/relay/revocations.ts'
import { createAudit } from '../../apps/session/store/audit.ts'
import { systemClock } from '../../apps/shared/clock.ts'
import { canonicalJson, deriveKey, hmacSha256 } from '../../apps/shared/data/digest.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { type Anchor, signAnchor } from '../../db/audit.anchors.ts'
import { type AuditTable, appendAuditTo } from '../../db/audit.ts'
import { createDb, type Tx } from '../../db/client.ts'
import { user_events } from '../../db/identity/tables.ts'
import { audit as operationsAudit } from '../../db/operations/tables/index.ts'
import { key_events } from '../../db/token/tables.ts'
import { testDatabase } from '../support/database.ts'

/** Every audit log, written by the production code, sealed by the relay's, and tampered with by its owner. */
const SECRET = Buffer.alloc(32, 7)
const KEY = deriveKey(SECRET, 'audit')
const FORGED = deriveKey(Buffer.alloc(32, 8), 'audit')
const ROWS = 6

let database: Awaited<ReturnType<typeof testDatabase>>
let close: () => Promise<void>
let db: ReturnType<typeof createDb>['db']
let pool: pg.Pool

const inOne = (table: AuditTable) => (n: number) =>
  db.transaction((tx) =>
    appendAuditTo(tx, table, KEY, {
      actor: `user:u${n}`,
      roles: ['operator'],
      action: 'test',
      object: `thing:${n}`,
      outcome: 'done',
    }),
  )
const inCatalog = (n: number) => {
  const cause = { actor: `user:u${n}`, roles: ['operator'], action: 'test', at: new Date().toISOString() }
  const rest = { request_id: null, reason: null, command_id: null }
  const deps = { keys: { audit: KEY } } as Parameters<typeof recordAudit>[1]
  return db.transaction((tx: Tx) =>
    recordAudit(tx, deps, { ...cause, ...rest }, { object: `thing:${n}`, outcome: 'done' }),
  )
}
const inSession = (n: number) => {
  const store = { appendAudit: async (row: string) => void (await storeAudit(pool, JSON.parse(row))) as never }
  const { log } = createTelemetry('test', { level: 'silent' })
  const audit = createAudit({ store, secrets: [SECRET], clock: systemClock, log })
  return audit({ action: 'login', outcome: 'done', actor: `user:u${n}`, request_id: `r${n}` })
}

const LOGS: Record<string, (n: number) => Promise<void>> = {
  'identity.user_events': inOne(user_events as AuditTable),
  'session.auth_events': inSession,
  'token.key_events': inOne(key_events as AuditTable),
  'catalog.audit': inCatalog,
  'operations.audit': inOne(operationsAudit as AuditTable),
}

beforeAll(async () => {
  database = await testDatabase('identity', 'session', 'token', 'catalog', 'operations')
  const opened = createDb(database.url, { app: 'test' })
  db = opened.db
  close = opened.close
  pool = new pg.Pool({ connectionString: database.url, options: '-c timezone=UTC' })
}, 60_000)
afterAll(async () => {
  await pool?.end()
  await close?.()
  await database?.drop()
})

const headOf = async (log: string) => {
  const { rows } = await pool.query<{ seal_seq: string; seal_hash: string }>(
    `select seal_seq::text, seal_hash from ${log} where seal_seq is not null order by ${log}.seal_seq desc limit 1`,
  )
  return rows[0]
}
const anchorOf = async (log: string): Promise<Anchor> => {
  const head = await headOf(log)
  return { at: '2026-01-01T00:00:00.000Z', heads: head ? [{ log, ...head }] : [] }
}

/** Where a row is tampered with: `$1` is the third row of the log, `$2` the one after it. */
type Tampering = { what: string; sql: (log: string) => string; says: RegExp; anchored?: true }
const EDITED: [column: string, to: string][] = [
  ['actor', "'user:nobody'"],
  ['action', "'another'"],
  ['object', "'thing:else'"],
  ['outcome', "'denied'"],
  ['reason', "'a better one'"],
  ['on_behalf_of', "'user:else'"],
  ['before_hash', "'sha256:00'"],
  ['after_hash', "'sha256:00'"],
  ['request_id', "'another'"],
  ['command_id', 'gen_random_uuid()'],
]
const columnsOf = (log: string) =>
  `actor, action, object, outcome, reason, request_id, command_id, at, body, mac, on_behalf_of, before_hash, after_hash${
    log === 'session.auth_events' ? '' : ', roles'
  }`
/** Seals all rows again as the chain requires: the owner of the database knows how. */
const RESEALED = (log: string) => `
  do $$ declare r record; n bigint := 0; prev text := repeat('0', 64); begin
    for r in select * from ${log} order by seal_seq loop
      n := n + 1;
      update ${log} set seal_seq = n, prev_hash = prev,
        seal_hash = encode(sha256(convert_to(prev || '|' || n || '|' || r.mac || '|' || r.id, 'UTF8')), 'hex')
      where id = r.id returning seal_hash into prev;
    end loop; end $$`
const swapped = (log: string, columns: string) => {
  const set = columns.split(', ').map((column) => `${column} = o.${column}`)
  const tmp =
    log === 'session.auth_events'
      ? 'alter table session.auth_events drop constraint if exists auth_events_event_id_unique;'
      : ''
  return `${tmp} update ${log} a set ${set.join(', ')} from ${log} o where a.id in ($1, $2) and o.id in ($1, $2) and o.id <> a.id`
}

const TAMPERINGS: Tampering[] = [
  {
    what: 'shifted by 30 days',
    sql: (log) => `update ${log} set at = at - interval '30 days' where id = $1`,
    says: /row \d+: its column at differs from its body/,
  },
  {
    what: 'shifted by a microsecond',
    sql: (log) => `update ${log} set at = at + interval '1 microsecond' where id = $1`,
    says: /row \d+: its column at differs from its body/,
  },
  ...EDITED.map(([column, to]) => ({
    what: `edited in its ${column}`,
    sql: (log: string) => `update ${log} set ${column} = ${to} where id = $1`,
    says: new RegExp(`row \\d+: its column ${column} differs from its body`),
  })),
  {
    what: 'edited in its body',
    sql: (log) => `update ${log} set body = replace(body, 'user:u3', 'user:u9') where id = $1`,
    says: /row \d+: its MAC does not fit its body/,
  },
  {
    what: 'deleted',
    sql: (log) => `delete from ${log} where id = $1`,
    says: /the sealed row number 3 before it is missing/,
  },
  {
    what: 'deleted and all sealed again',
    sql: (log) => `delete from ${log} where id = $1; ${RESEALED(log)}`,
    says: /the log ends before row number 6, which was anchored at 2026/,
    anchored: true,
  },
  {
    what: 'swapped with the next',
    sql: (log) => swapped(log, log === 'session.auth_events' ? `${columnsOf(log)}, event_id` : columnsOf(log)),
    says: /row \d+: its seal does not fit it/,
  },
  {
    what: 'given the number of the next',
    sql: (log) => `
      alter table ${log} alter column id set generated by default;
      update ${log} set id = -id where id in ($1, $2);
      update ${log} set id = case id when -$1 then $2 else $1 end where id in (-$1, -$2)`,
    says: /row \d+: its seal does not fit it/,
  },
  {
    what: 'swapped in its place and all sealed again',
    sql: (log) => `
      update ${log} set seal_seq = -seal_seq where id in ($1, $2);
      update ${log} set seal_seq = case seal_seq when -3 then 4 else 3 end where seal_seq < 0; ${RESEALED(log)}`,
    says: /row \d+: it is not the one that was anchored at 2026/,
    anchored: true,
  },
  {
    what: 'inserted as a copy',
    sql: (log) => `
      ${log === 'session.auth_events' ? 'alter table session.auth_events drop constraint if exists auth_events_event_id_unique;' : ''}
      insert into ${log} (${columnsOf(log)}${log === 'session.auth_events' ? ', event_id' : ''})
      select ${columnsOf(log)}${log === 'session.auth_events' ? ', event_id' : ''} from ${log} where id = $1 and $2::bigint > 0`,
    says: /row \d+: it is a copy of row \d+/,
  },
  {
    what: 'inserted with a MAC of another key',
    sql: (log) => {
      const body = canonicalJson({
        v: 2,
        log,
        audit_id: uuidv7(),
        actor: 'user:u1',
        action: 'test',
        object: 'a:b',
        outcome: 'done',
        at: '2026-01-01T00:00:00.000Z',
      })
      const mac = hmacSha256(FORGED, body).toString('hex')
      const event = log === 'session.auth_events' ? [', event_id', ', gen_random_uuid()'] : ['', '']
      return `insert into ${log} (actor, action, object, outcome, at, body, mac${event[0]})
        select 'user:u1', 'test', 'a:b', 'done', '2026-01-01', '${body}', '${mac}'${event[1]} where $1::bigint > 0 and $2::bigint > 0`
    },
    says: /row \d+: its MAC does not fit its body/,
  },
  {
    what: 'taken from another log',
    sql: (log) => {
      const other = log === 'catalog.audit' ? 'operations.audit' : 'catalog.audit'
      const event = log === 'session.auth_events' ? [', event_id', ', gen_random_uuid()'] : ['', '']
      return `insert into ${log} (actor, action, object, outcome, at, body, mac${event[0]})
        select actor, action, object, outcome, at, body, mac${event[1]} from ${other} where id = (select min(id) from ${other}) and $1::bigint > 0 and $2::bigint > 0`
    },
    says: /row \d+: it belongs to another log/,
  },
  {
    what: 'at the end, cut off',
    sql: (log) => `delete from ${log} where id = (select max(id) from ${log})`,
    says: /the log ends before row number 6, which was anchored at 2026/,
    anchored: true,
  },
]

/** Statements with plain numbers in place of $1 and $2: several at once take no parameters. */
const tamper = async (sql: string, ids: string[]) =>
  pool.query(sql.replaceAll('$1', ids[2] as string).replaceAll('$2', ids[3] as string))

describe.each(Object.keys(LOGS))('%s', (log) => {
  let ids: string[] = []
  let anchor: Anchor
  const verify = (anchors: Anchor[] = []) => verifyLog(db, log, [KEY], anchors)
  const clear = () => pool.query(`truncate ${log} restart identity`)

  const fill = async () => {
    for (let n = 1; n <= ROWS; n++) await (LOGS[log] as (n: number) => Promise<void>)(n)
    while (await sealAudit(pool));
    const { rows } = await pool.query<{ id: string }>(`select id::text from ${log} order by ${log}.id`)
    ids = rows.map(({ id }) => id)
    anchor = await anchorOf(log)
  }
  beforeAll(async () => {
    for (const other of ['catalog.audit', 'operations.audit'])
      if (other !== log) {
        await pool.query(`truncate ${other} restart identity`)
        await LOGS[other]?.(1)
      }
  })

  it('verifies unchanged, with every row signed completely', async () => {
    await clear()
    await fill()
    expect(await verify([anchor])).toEqual({ log, rows: ROWS, sealed: ROWS, version_1: 0 })
  })

  it.each(TAMPERINGS.map((one) => [one.what, one] as const))(
    'names a row %s',
    async (_what, { sql, says, anchored }) => {
      await clear()
      await fill()
      await tamper(sql(log), ids)
      const verdict = await verify(anchored ? [anchor] : [])
      expect(verdict.fault).toMatch(says)
    },
  )

  it('names rows of version 1 as such, and the changes to them', async () => {
    await clear()
    await LOGS[log]?.(1)
    const keeps_time = log === 'session.auth_events' || log === 'catalog.audit'
    const { rows } = await pool.query<{ id: string; body: string }>(`select id::text, body from ${log}`)
    const { v: _v, log: _log, at, audit_id, ...old } = JSON.parse(rows[0]?.body as string)
    const body = canonicalJson({ ...old, ...(keeps_time ? { at } : { audit_id }) })
    const mac = hmacSha256(KEY, body).toString('hex')
    await pool.query(`update ${log} set body = $1, mac = $2`, [body, mac])
    await pool.query(
      `update ${log} set seal_seq = 1, prev_hash = repeat('0', 64),
         seal_hash = encode(sha256(convert_to(repeat('0', 64) || '|1|' || mac, 'UTF8')), 'hex')`,
    )
    await LOGS[log]?.(2)
    while (await sealAudit(pool));
    expect(await verify()).toEqual({ log, rows: 2, sealed: 2, version_1: 1 })
    await pool.query(`update ${log} set at = at - interval '30 days' where id = $1`, [rows[0]?.id])
    expect((await verify()).fault).toMatch(
      keeps_time
        ? /row 1: its column at differs from its body/
        : /row 1: its column at differs by 30 days from the time in its id/,
    )
  })
})

describe('anchors', () => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-anchors-'))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  const { privateKey: private_key } = generateKeyPairSync('ed25519')
  const key = { kid: 'relay', private_key }

  it('do not continue a line that was cut off', () => {
    const file = join(dir, 'torn.jsonl')
    appendAnchor(file, 'first')
    appendFileSync(file, 'second, cut')
    appendAnchor(file, 'third')
    appendAnchor(file, 'fourth')
    expect(readFileSync(file, 'utf8')).toBe('first\nsecond, cut\nthird\nfourth\n')
  })

  it('go on after the clock was set back', async () => {
    await inCatalog(1)
    while (await sealAudit(pool));
    const file = join(dir, 'future.jsonl')
    const heads = await readHeads(pool)
    appendAnchor(file, signAnchor({ at: new Date(Date.now() + 86_400_000).toISOString(), heads }, key))
    const given = { pool, nats: { get: () => undefined }, prefix: '', key, file, interval_ms: 60_000 }
    const anchors = createAnchors(given)
    expect(anchors.age_s()).toBeLessThan(60)
    await anchors.turn()
    await anchors.turn()
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2)
    // The next process knows the time of the last one.
    await createAnchors(given).turn()
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2)
  })

  it('go on in the file while the stream refuses them, and reach it later', async () => {
    await inCatalog(1)
    while (await sealAudit(pool));
    const file = join(dir, 'refused.jsonl')
    const lines = () => readFileSync(file, 'utf8').trim().split('\n')
    const sent: string[] = []
    let away = true
    const publish = async (_: string, line: string) => {
      if (away) throw new Error('no quorum')
      sent.push(line)
    }
    const nc = {
      jetstreamManager: async () => ({ streams: { info: async () => ({ config: {} }), update: async () => {} } }),
    }
    const nats = { get: () => ({ ...nc, jetstream: () => ({ publish }) }) as never }
    const anchors = createAnchors({ pool, nats, prefix: '', key, file, interval_ms: 0 })
    for (let n = 0; n < 2; n++) await expect(anchors.turn()).rejects.toThrow()
    expect(lines()).toHaveLength(2)
    away = false
    await anchors.turn()
    expect(lines()).toHaveLength(3)
    expect(sent).toEqual(lines())
  })
})
