import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Client, Connection } from '@temporalio/client'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutcomes } from '../../apps/operations/command/outcomes.ts'
import { createCommandSender, reconcile } from '../../apps/relay/commands/send.ts'
import {
  adoptEngine,
  createEngine,
  createPlaceGuard,
  type Engine,
  refuseOther,
} from '../../apps/relay/commands/temporal.ts'
import type { RelayConfig } from '../../apps/relay/config.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createDb } from '../../db/client.ts'
import { serverUrl, testDatabase } from '../support/database.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'

const log = createTelemetry('test', { level: process.env.LOG ?? 'silent' }).log
const config = (address: string, namespace = 'default') =>
  ({
    RELAY__TEMPORAL__ADDRESS: address,
    RELAY__TEMPORAL__NAMESPACE: namespace,
    RELAY__TEMPORAL__QUEUE_PREFIX: `t${randomUUID().slice(0, 8)}`,
    RELAY__TEMPORAL__SEARCH_ATTRIBUTES: false,
    RELAY__COMMANDS__IN_FLIGHT: 64,
  }) as RelayConfig

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
let engine: Engine
let connection: Connection
let client: Client

beforeAll(async () => {
  database = await testDatabase('operations')
  pool = new pg.Pool({ connectionString: database.url, max: 10 })
  engine = createEngine(config(serverUrl('TEMPORAL_ADDRESS')))
  connection = await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') })
  client = new Client({ connection })
})
afterAll(async () => {
  await engine.close()
  await connection.close()
  await pool.end()
  await database.drop()
})

const senderOf = (target: Engine, notify: Parameters<typeof createCommandSender>[0]['notify'] = () => {}) => {
  const refuse = createPlaceGuard(pool, target, log)
  return createCommandSender({ pool, engine: target, config: config(''), log, notify, observe: () => {}, refuse })
}

const PAGE = 'https://console.test/operations/1'
const add = async (
  operation_id: string,
  seq: number,
  kind: string,
  extra: { class?: string; not_after?: string } = {},
) => {
  const command_id = randomUUID()
  const payload =
    kind === 'start'
      ? {
          title: 'a [test]',
          plan_id: randomUUID(),
          plan_hash: 'sha256:0',
          requester: 'olga',
          kind: 'graph',
          page: PAGE,
        }
      : {}
  await pool.query(
    `insert into operations.operation_commands (command_id, operation_id, seq, kind, class, payload, actor, not_after)
     values ($1, $2, $3, $4, $5, $6, '{"kind":"user","id":"u","name":"olga"}', $7)`,
    [
      command_id,
      operation_id,
      seq,
      kind,
      extra.class ?? (kind === 'start' ? 'start' : 'stop'),
      payload,
      extra.not_after ?? null,
    ],
  )
  return command_id
}
/** An operation that the engine has not moved for an hour. */
const insertOperation = async (operation_id: string, engine_ref: object) => {
  await pool.query(
    `insert into operations.operations (operation_id, intent_id, plan_id, title, kind, requester, requester_id, starter_id, risk_level,
       labels, plan_hash, constraints, max_parallel, pins, evidence_hash, engine_ref, updated_at)
     values ($1, $1, $1, 'a test', 'graph', '{}', 'u', 'u', 'low', '{}', '', '{}', 1, '{}', '', $2, now() - interval '1 hour')`,
    [operation_id, engine_ref],
  )
  await pool.query('insert into operations.operation_control (operation_id) values ($1)', [operation_id])
}
const statuses = async (operation_id: string) =>
  (
    await pool.query<{ status: string }>(
      'select status from operations.operation_commands where operation_id = $1 order by seq',
      [operation_id],
    )
  ).rows.map((row) => row.status)
const signalsOf = async (operation_id: string) => {
  const history = JSON.parse(historyToJSON(await client.workflow.getHandle(operation_id).fetchHistory())) as {
    events: {
      eventType: string
      workflowExecutionSignaledEventAttributes?: { input: { payloads: { data: string }[] } }
    }[]
  }
  return history.events.flatMap((event) => {
    const data = event.workflowExecutionSignaledEventAttributes?.input.payloads[0]?.data
    return data ? [JSON.parse(Buffer.from(data, 'base64').toString('utf8')) as { command_id: string; seq: number }] : []
  })
}

describe('commands to Temporal', () => {
  it('starts the workflow once and delivers the signals of an operation strictly in order', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start')
    const ids: string[] = []
    for (let seq = 2; seq <= 6; seq++) ids.push(await add(operation_id, seq, seq % 2 ? 'resume' : 'pause'))
    const sender = senderOf(engine)
    await until(async () => {
      await sender.turn()
      return (await statuses(operation_id)).every((status) => status === 'delivered')
    })
    expect((await signalsOf(operation_id)).map((signal) => signal.command_id)).toEqual(ids)
    // An engineer who finds it in the engine's own pages can tell what it is.
    const { staticSummary, staticDetails, memo } = await client.workflow.getHandle(operation_id).describe()
    expect(await staticSummary()).toBe('a \\[test\\]')
    expect(await staticDetails()).toContain(`](${PAGE})`)
    expect(await staticDetails()).toContain(`Operation \`${operation_id}\` of kind graph, requested by \`olga\``)
    expect(memo).toMatchObject({ operation_id, title: 'a [test]', plan_hash: 'sha256:0' })
  })

  it('sends only stops while a restore of the database waits for a person', async () => {
    const [running, new_one] = [randomUUID(), randomUUID()]
    const sender = senderOf(engine)
    const sent = (id: string, ...wanted: string[]) =>
      until(async () => {
        await sender.turn()
        return (await statuses(id)).join() === wanted.join()
      })
    await add(running, 1, 'start')
    await sent(running, 'delivered')
    await pool.query(
      `insert into operations.relay_state (name, stream_created) values ('restored', '2026-01-01T00:00:00Z')`,
    )
    await add(new_one, 1, 'start')
    await add(running, 2, 'pause')
    await add(running, 3, 'resume', { class: 'start' })
    await sent(running, 'delivered', 'delivered', 'pending')
    expect(await statuses(new_one)).toEqual(['pending'])
    await pool.query(`update operations.relay_state set stream_created = null where name = 'restored'`)
    await sent(new_one, 'delivered')
    await sent(running, 'delivered', 'delivered', 'delivered')
    await pool.query(`delete from operations.relay_state where name = 'restored'`)
  })

  it('announces a command to its waiters once the engine has it; those who wait for more keep waiting', async () => {
    const { db, close } = createDb(database.url, { app: 'test' })
    const outcomes = createOutcomes(db, log)
    const operation_id = randomUUID()
    const start = await add(operation_id, 1, 'start')
    const pause = await add(operation_id, 2, 'pause')
    const waiting = [outcomes.within(start, 2000), outcomes.within(pause, 30_000)]
    const told: string[] = []
    const sender = senderOf(engine, ({ command_id, kind }) => {
      told.push(kind)
      outcomes.hear(Buffer.from(JSON.stringify({ command_id, kind })))
    })
    outcomes.hear(Buffer.from('{"command_id":'))
    expect(told).toEqual([])
    await until(async () => {
      await sender.turn()
      return told.length === 2
    })
    expect(told).toEqual(['start', 'pause'])
    expect(await waiting[1]).toMatchObject({ command_id: pause, status: 'delivered' })
    expect(await waiting[0]).toBeUndefined()
    await sender.drain()
    outcomes.close()
    await close()
  })

  it('resends a command whose delivery is in doubt, and the engine applies it once', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start')
    const id = await add(operation_id, 2, 'pause')
    const sender = senderOf(engine)
    const delivered = () =>
      until(async () => {
        await sender.turn()
        return (await statuses(operation_id)).every((status) => status === 'delivered')
      })
    await delivered()
    await pool.query(`update operations.operation_commands set status = 'sending' where operation_id = $1`, [
      operation_id,
    ])
    await delivered()
    expect((await signalsOf(operation_id)).map((signal) => signal.command_id)).toEqual([id])
  })

  it('reports a signal to an operation unknown to the engine, and keeps the command', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'pause')
    const sender = senderOf(engine)
    await sender.turn()
    await sender.drain()
    const { rows } = await pool.query('select found from operations.engine_findings where operation_id = $1', [
      operation_id,
    ])
    expect(rows).toEqual([{ found: 'gone' }])
    expect(await statuses(operation_id)).toEqual(['sending'])
  })

  it('takes no operation for lost because its namespace is unknown to the engine', async () => {
    const operation_id = randomUUID()
    const elsewhere = createEngine(config(serverUrl('TEMPORAL_ADDRESS'), 'mistyped'))
    await add(operation_id, 1, 'pause')
    await pool.query(`update operations.operation_commands set status = 'delivered' where status = 'sending'`)
    const sender = senderOf(elsewhere)
    await sender.turn()
    await sender.drain()
    const { rows } = await pool.query('select found from operations.engine_findings where operation_id = $1', [
      operation_id,
    ])
    expect(rows).toEqual([])
    expect(await statuses(operation_id)).toEqual(['sending'])
    await expect(elsewhere.describe(operation_id)).rejects.toThrow(/mistyped/)
    await elsewhere.close()
  })

  it('gives a start-class command that the engine refuses to the sweeper, which undoes it', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start')
    await pool.query(
      `update operations.operation_commands set payload = payload || jsonb_build_object('pad', repeat('x', 2500000)) where operation_id = $1`,
      [operation_id],
    )
    const sender = senderOf(engine)
    await sender.turn()
    await sender.drain()
    await sender.turn()
    const { rows } = await pool.query(
      'select status, attempts, not_after < clock_timestamp() as overdue from operations.operation_commands where operation_id = $1',
      [operation_id],
    )
    expect(rows).toEqual([{ status: 'pending', attempts: 0, overdue: true }])
  })

  it('lets no number go missing when the engine refuses an edit, and delivers a stop without its text', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start')
    const edit = await add(operation_id, 2, 'node_signal', { class: 'edit' })
    const stop = await add(operation_id, 3, 'pause')
    const long = `repeat('x', 2500000)`
    await pool.query(
      `update operations.operation_commands set payload = jsonb_build_object('name', ${long}) where command_id = $1`,
      [edit],
    )
    await pool.query(`update operations.operation_commands set reason = ${long} where command_id = $1`, [stop])
    const sender = senderOf(engine)
    await until(async () => {
      await sender.turn()
      return (await statuses(operation_id)).join() === 'delivered,refused,delivered'
    })
    // The end of the operation may wait for the number of the refused one.
    expect(await signalsOf(operation_id)).toMatchObject([
      { seq: 2, kind: 'place_free', body: { node_ids: [] } },
      { seq: 3, kind: 'pause', command_id: stop },
    ])
  })

  it('takes no operation for lost that its worker has seen in another namespace', async () => {
    const sender = senderOf(engine)
    const findings = async (namespace: string) => {
      const operation_id = randomUUID()
      const started = await add(operation_id, 1, 'start')
      await pool.query(`update operations.operation_commands set status = 'applied' where command_id = $1`, [started])
      await insertOperation(operation_id, { namespace, workflow_id: operation_id, run_id: '' })
      await reconcile(pool, engine)
      await add(operation_id, 2, 'pause')
      await sender.turn()
      await sender.drain()
      expect(await statuses(operation_id)).toEqual(['applied', 'sending'])
      const own = 'select found from operations.engine_findings where operation_id = $1'
      return (await pool.query(own, [operation_id])).rows.map(({ found }) => found)
    }
    expect(await findings('elsewhere')).toEqual([])
    expect(await findings('default')).toEqual(['gone', 'gone'])
  })

  it('says so once the engine knows an operation again that it had lost', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start')
    const sender = senderOf(engine)
    await sender.turn()
    await sender.drain()
    await insertOperation(operation_id, { namespace: 'default', workflow_id: operation_id, run_id: '' })
    await reconcile(pool, engine)
    await pool.query(
      `update operations.operation_control set control = 'pause', pause_reason = 'engine_lost' where operation_id = $1`,
      [operation_id],
    )
    await reconcile(pool, engine)
    const own = 'select found from operations.engine_findings where operation_id = $1'
    expect((await pool.query(own, [operation_id])).rows).toEqual([{ found: 'running' }])
  })

  it('says only once that an operation is lost', async () => {
    const operation_id = randomUUID()
    const started = await add(operation_id, 1, 'start')
    await pool.query(`update operations.operation_commands set status = 'applied' where command_id = $1`, [started])
    await insertOperation(operation_id, {})
    await pool.query(
      `update operations.operation_control set control = 'pause', pause_reason = 'engine_lost' where operation_id = $1`,
      [operation_id],
    )
    await reconcile(pool, engine)
    const own = 'select found from operations.engine_findings where operation_id = $1'
    expect((await pool.query(own, [operation_id])).rows).toEqual([])
  })

  it('finds a lost operation however many healthy ones wait before it', async () => {
    const healthy = Array.from({ length: 120 }, () => randomUUID())
    for (const operation_id of healthy) await add(operation_id, 1, 'start')
    const sender = senderOf(engine)
    const unsent = `select from operations.operation_commands where operation_id = any($1) and status <> 'delivered'`
    await until(
      async () => {
        await sender.turn()
        return (await pool.query(unsent, [healthy])).rowCount === 0
      },
      { timeout_ms: 60_000 },
    )
    for (const operation_id of healthy) await insertOperation(operation_id, {})
    // Last in every order.
    const operation_id = `ffffffff-${randomUUID().slice(9)}`
    const started = await add(operation_id, 1, 'start')
    await pool.query(`update operations.operation_commands set status = 'applied' where command_id = $1`, [started])
    await insertOperation(operation_id, {})
    await pool.query(`update operations.operations set updated_at = now() - interval '2 min' where operation_id = $1`, [
      operation_id,
    ])
    const own = 'select found from operations.engine_findings where operation_id = $1'
    const found = async () => (await pool.query(own, [operation_id])).rows
    let after = await reconcile(pool, engine)
    expect(await found()).toEqual([])
    after = await reconcile(pool, engine, after)
    expect(await found()).toEqual([{ found: 'gone' }])
    // The next turn begins anew.
    await pool.query('delete from operations.engine_findings where operation_id = $1', [operation_id])
    after = await reconcile(pool, engine, after)
    await reconcile(pool, engine, after)
    expect(await found()).toEqual([{ found: 'gone' }])
  }, 90_000)

  it('sends no command to another engine than the one of its operations, and takes none of them for lost', async () => {
    const address = serverUrl('TEMPORAL_ADDRESS')
    const place = `sb-${randomUUID().slice(0, 8)}`
    await client.workflowService.registerNamespace({
      namespace: place,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    })
    const other = createEngine(config(address, place))
    await until(async () => (await other.identity()) !== undefined)
    const operation_id = randomUUID()
    await add(operation_id, 1, 'pause')
    const known = async () =>
      (await pool.query(`select stream_created from operations.relay_state where name = 'engine'`)).rows
    await adoptEngine(pool, engine)
    const before = await known()
    await expect(senderOf(other).turn()).rejects.toThrow(`${address}/default, where the operations run`)
    expect(await statuses(operation_id)).toEqual(['pending'])
    const findings = () => pool.query('select from operations.engine_findings where operation_id = $1', [operation_id])
    expect((await findings()).rowCount).toBe(0)
    expect(await known()).toEqual(before)
    // The same engine under another name, and one that has lost its data at the known place, are known.
    const link = await startLink(`http://${address}`)
    const again = createEngine(config(new URL(link.url).host))
    await refuseOther(pool, again)
    await pool.query(
      `update operations.relay_state set stream_created = 'lost ' || split_part(stream_created, ' ', 2) where name = 'engine'`,
    )
    const sender = senderOf(again)
    await sender.turn()
    await sender.drain()
    expect((await findings()).rowCount).toBe(1)
    await Promise.all([other.close(), again.close()])
    link.stop()
    await adoptEngine(pool, engine)
  })

  it('trusts an engine that hides its namespace at the known address alone', async () => {
    const shy = createHttp2()
    shy.on('stream', (stream) => {
      const refused = { 'grpc-status': '7', 'grpc-message': 'Request unauthorized.' }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...refused }, { endStream: true })
    })
    await once(shy.listen(0, '127.0.0.1'), 'listening')
    const hidden = createEngine(config(`127.0.0.1:${(shy.address() as AddressInfo).port}`))
    await adoptEngine(pool, engine)
    await expect(refuseOther(pool, hidden)).rejects.toThrow('may be another engine')
    await expect(senderOf(hidden).turn()).rejects.toThrow('may be another engine')
    await adoptEngine(pool, hidden)
    await refuseOther(pool, hidden)
    await expect(refuseOther(pool, engine)).rejects.toThrow('may be another engine')
    await hidden.close()
    shy.close()
    await adoptEngine(pool, engine)
    await refuseOther(pool, engine)
  })

  it('leaves a start that was never sent to the sweeper once its deadline has passed', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start', { not_after: new Date(Date.now() - 1000).toISOString() })
    const sender = senderOf(engine)
    await sender.turn()
    await sender.drain()
    expect(await statuses(operation_id)).toEqual(['pending'])
    expect(await engine.describe(operation_id)).toBe('gone')
  })

  it('gives up a start in doubt when its deadline has passed and the engine never received it', async () => {
    const operation_id = randomUUID()
    await add(operation_id, 1, 'start', { not_after: new Date(Date.now() - 1000).toISOString() })
    await pool.query(
      `update operations.operation_commands set status = 'sending', attempts = 1 where operation_id = $1`,
      [operation_id],
    )
    const sender = senderOf(engine)
    await sender.turn()
    await sender.drain()
    expect(await statuses(operation_id)).toEqual(['pending'])
    expect(await engine.describe(operation_id)).toBe('gone')
  })

  it('puts no further command in doubt while the engine is down', async () => {
    const away = createEngine(config('127.0.0.1:1'), 500)
    const [a, b] = [randomUUID(), randomUUID()]
    await add(a, 1, 'pause')
    const sender = senderOf(away)
    await sender.turn()
    await sender.drain()
    expect(await statuses(a)).toEqual(['sending'])
    await add(b, 1, 'pause')
    await expect(sender.turn()).rejects.toThrow()
    expect(await statuses(b)).toEqual(['pending'])
    await away.close()
  })
})
