import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLog } from '../../activities/attempts/running.ts'
import type { PlanNode } from '../../apps/shared/contracts/operations/graph.ts'
import type { OperationCalendar } from '../../apps/shared/data/calendar.ts'
import { maskerOf } from '../../apps/shared/data/mask.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { createDb } from '../../db/client.ts'
import { insertExecution, newestExecution } from '../../db/operations/agents/executions.ts'
import { offerPlaces } from '../../db/operations/commands/places.ts'
import { SYSTEM } from '../../db/operations/facts/state.ts'
import { endAttempt, noteAttempt } from '../../db/operations/nodes/attempts.ts'
import { type Claim, claimAttempt, claimPlain } from '../../db/operations/nodes/claim.ts'
import {
  gates,
  node_attempts,
  nodes,
  operation_commands,
  operation_control,
  operations,
} from '../../db/operations/tables/index.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let connection: ReturnType<typeof createDb>
beforeAll(async () => {
  database = await testDatabase('operations')
  connection = createDb(database.url, { app: 'test', max: 20 })
})
afterAll(async () => {
  await connection.close()
  await database.drop()
})

type Setup = {
  control?: Partial<typeof operation_control.$inferInsert>
  node?: Partial<typeof nodes.$inferInsert>
  spec?: Partial<PlanNode>
  gate?: Partial<typeof gates.$inferInsert>
}

/** One operation with the node "n", reduced to what a claim reads. */
const setUp = async ({ control, node, spec, gate }: Setup = {}) => {
  const operation_id = uuidv7()
  const { db } = connection
  await db.insert(operation_control).values({ operation_id, command_seq: 7, ...control })
  await db
    .insert(operations)
    .values({
      operation_id,
      intent_id: uuidv7(),
      plan_id: uuidv7(),
      title: 't',
      kind: 'graph',
      requester: SYSTEM,
      requester_id: 'x',
      starter_id: 'x',
      risk_level: 'low',
      labels: {},
      plan_hash: 'h',
      evidence_hash: 'h',
      constraints: {},
      max_parallel: 5,
      pins: {},
    })
  await db
    .insert(nodes)
    .values({
      operation_id,
      node_id: 'n',
      ordinal: 0,
      name: 'N',
      kind: 'task',
      executor: 'noop',
      spec_digest: 'd',
      state: 'ready',
      gate_ids: gate ? ['g'] : [],
      spec: {
        executor: 'noop',
        idempotent: false,
        timeouts: { run_s: 60 },
        step: 'p@1/q.s',
        compensate: { executor: 'noop', with: {}, idempotent: true },
        ...spec,
      } as PlanNode,
      ...node,
    })
  if (gate)
    await db
      .insert(gates)
      .values({
        operation_id,
        gate_id: 'g',
        question: '?',
        policy: {} as never,
        guards: ['n'],
        subject: {} as never,
        digest: 'new',
        ...gate,
      })
  await db.insert(operation_commands).values([
    { command_id: uuidv7(), operation_id, seq: 6, kind: 'pause', class: 'stop', payload: {}, actor: SYSTEM },
    {
      command_id: uuidv7(),
      operation_id,
      seq: 7,
      kind: 'resume',
      class: 'start',
      payload: {},
      actor: SYSTEM,
      status: 'withdrawn',
    },
  ])
  return operation_id
}

const claim = (operation_id: string, more: Partial<Parameters<typeof claimAttempt>[1]> = {}): Promise<Claim> =>
  claimAttempt(connection.pool, { operation_id, node_id: 'n', role: 'run', generation: 1, attempt: 1, ...more })
const granted = async (operation_id: string, more: Partial<Parameters<typeof claimAttempt>[1]> = {}) => {
  const result = await claim(operation_id, more)
  if (result.verdict !== 'granted') throw new Error(`not granted: ${JSON.stringify(result)}`)
  return result
}
const attemptsOf = (operation_id: string) =>
  connection.db.select().from(node_attempts).where(sql`operation_id = ${operation_id}`).orderBy(node_attempts.attempt)
const success = { phase: 'succeeded', inputs: {}, outputs: { x: 1 }, error: null, lines: [], artifacts: [] } as const
const ref = (operation_id: string, fence: number, attempt = 1) => ({
  operation_id,
  node_id: 'n',
  role: 'run' as const,
  attempt,
  fence,
})

it.each<[string, Setup, Partial<Claim>]>([
  ['control is pause', { control: { control: 'pause' } }, { reason: 'stopped' }],
  ['control is cancel', { control: { control: 'cancel', cancel_mode: 'compensate' } }, { reason: 'stopped' }],
  ['another generation', { node: { generation: 2 } }, { reason: 'superseded', generation: 2 }],
  ['a removed node', { node: { removed: true } }, { reason: 'superseded' }],
  ['a node held by a patch', { node: { hold_patch_id: uuidv7() } }, { reason: 'held' }],
  ['an armed gate', { gate: { status: 'armed' } }, { reason: 'gate_open' }],
  [
    'a waiting gate',
    { gate: { status: 'waiting', round: 3 } },
    { reason: 'gate_open', gates: [{ gate_id: 'g', status: 'waiting', round: 3 }] },
  ],
  ['an approval of something else', { gate: { status: 'approved', approved_digest: 'old' } }, { reason: 'gate_open' }],
  ['leases that are given back', { control: { lease_state: 'released' } }, { reason: 'lease_lost', seq: 6 }],
  ['leases that others hold', { control: { lease_state: 'waiting' } }, { reason: 'lease_lost' }],
  ['a rejected gate', { gate: { status: 'rejected', approved_digest: 'new' } }, { reason: 'gate_open' }],
  ['stopped before gate', { control: { control: 'pause' }, gate: { status: 'waiting' } }, { reason: 'stopped' }],
])('refuses %s, names the last command that will be sent, and writes nothing', async (_what, setup, refusal) => {
  const operation_id = await setUp(setup)
  expect(await claim(operation_id)).toMatchObject({ verdict: 'refused', repeated: false, seq: 6, ...refusal })
  expect(await attemptsOf(operation_id)).toEqual([])
})

describe('the claim of most nodes', () => {
  const input = { node_id: 'n', role: 'run', generation: 1, attempt: 1 } as const
  const rowsOf = async (operation_id: string) => {
    const [attempt] = await attemptsOf(operation_id)
    const [node] = await connection.db.select().from(nodes).where(sql`operation_id = ${operation_id}`)
    const { fence: _, fences, started_at, heartbeat_at: _h, deadline_at, key, ...same } = attempt ?? ({} as never)
    const { started_at: begun, updated_at: _u, ...alike } = node ?? ({} as never)
    const length = Date.parse(String(deadline_at)) - Date.parse(String(started_at))
    return [
      {
        ...same,
        operation_id,
        fences: fences.length,
        key: key.replace(operation_id, ''),
        length: Math.round(length / 1000),
      },
      { ...alike, operation_id, begun: begun !== null },
    ].map((row) => ({ ...row, operation_id: '' }))
  }

  it('writes and says what the whole claim does', async () => {
    const [plain, whole] = [await setUp(), await setUp({ spec: { executor: 'noop' } })]
    const first = await claimPlain(connection.pool, { operation_id: plain, ...input })
    // Behind its locks the whole claim is checked at once.
    const second = await claimAttempt(connection.pool, { operation_id: whole, ...input }, { proved: true })
    const said = (claim: Claim | undefined) => ({ ...claim, fence: 0, started_at: 0, now: 0 })
    expect(said(first)).toEqual(said(second))
    expect(await rowsOf(plain)).toEqual(await rowsOf(whole))
  })

  it('does not apply to a node with a gate, of an agent, of an undo, or to one that was tried before', async () => {
    const gate = { status: 'approved', approved_digest: 'new' } as const
    const none = async (setup: Setup, more: object = {}) => {
      const operation_id = await setUp(setup)
      expect(await claimPlain(connection.pool, { operation_id, ...input, ...more })).toBeUndefined()
      expect(await attemptsOf(operation_id)).toEqual([])
    }
    await none({ gate })
    await none({ spec: { executor: 'external' } })
    await none({ node: { state: 'compensating' } }, { role: 'undo' })
    await none({ control: { calendar: frozen(0) } })
    const tried = await setUp()
    await granted(tried, { attempt: 2 })
    for (const attempt of [1, 2])
      expect(await claimPlain(connection.pool, { operation_id: tried, ...input, attempt })).toBeUndefined()
    expect(await attemptsOf(tried)).toHaveLength(1)
  })

  it('is granted once, whatever races, and never after a pause', async () => {
    const operation_id = await setUp()
    const all = await Promise.all(
      Array.from({ length: 10 }, () => claimPlain(connection.pool, { operation_id, ...input })),
    )
    expect(all.filter(Boolean)).toHaveLength(1)
    const paused = await setUp()
    const waiting = await connection.db.transaction(async (tx) => {
      await tx.update(operation_control).set({ control: 'pause' }).where(sql`operation_id = ${paused}`)
      const asked = claimPlain(connection.pool, { operation_id: paused, ...input })
      await until(async () => {
        const { rows } = await connection.pool.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%granted as (%'`,
        )
        return rows.length > 0
      })
      return { asked }
    })
    expect(await waiting.asked).toBeUndefined()
    expect(await attemptsOf(paused)).toEqual([])
  })
})

const HOURS = { timezone: 'UTC', days: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'], from: '00:00', to: '00:00' }
const frozen = (to: number): OperationCalendar => ({
  windows: { always: HOURS },
  freezes: { launch: { from: '2020-01-01T00:00:00Z', to: new Date(to).toISOString(), approvers: [] } },
  asked: null,
  targets: { host: { windows: ['always'], freezes: ['launch'] } },
})
const HOUR = 3_600_000

describe('the calendar', () => {
  const until = Date.now() + HOUR
  const node = { target_id: 'host' }

  it('keeps a node from starting during a freeze, says until when, and nothing is written', async () => {
    const operation_id = await setUp({ node, control: { calendar: frozen(until) } })
    expect(await claim(operation_id)).toMatchObject({
      verdict: 'refused',
      reason: 'frozen',
      seq: 6,
      closure: { kind: 'freeze', id: 'launch', until },
    })
    expect(await attemptsOf(operation_id)).toEqual([])
  })

  it('keeps a node from starting outside its window', async () => {
    const closed = { ...frozen(0), windows: { always: { ...HOURS, days: [] } } }
    const operation_id = await setUp({ node, control: { calendar: closed } })
    expect(await claim(operation_id)).toMatchObject({
      reason: 'window_closed',
      closure: { kind: 'window', id: 'always' },
    })
  })

  it('does not bind other targets, undos, started nodes, or a freeze that was passed at its gate', async () => {
    const control = { calendar: frozen(until) }
    await granted(await setUp({ control, node: { target_id: 'other' } }))
    await granted(await setUp({ control: { calendar: frozen(Date.now() - HOUR) }, node }))
    const undone = { ...control, control: 'cancel', cancel_mode: 'compensate' } as const
    await granted(await setUp({ control: undone, node: { ...node, state: 'compensating' } }), { role: 'undo' })
    const gate = {
      kind: 'freeze',
      policy: { key: 'launch' } as never,
      status: 'approved',
      approved_digest: 'new',
    } as const
    await granted(await setUp({ control, node, gate }))
    const begun = await setUp({ node, spec: { idempotent: true } })
    const { fence } = await granted(begun)
    await connection.db.update(operation_control).set(control).where(sql`operation_id = ${begun}`)
    expect((await granted(begun)).fence).toBeGreaterThan(fence)
  })

  it('is checked last: a stopped operation or an open gate is named first', async () => {
    const calendar = frozen(until)
    const stopped = await setUp({ node, control: { calendar, control: 'pause' } })
    expect(await claim(stopped)).toMatchObject({ reason: 'stopped' })
    const open = await setUp({ node, control: { calendar }, gate: { status: 'waiting' } })
    expect(await claim(open)).toMatchObject({ reason: 'gate_open' })
  })
})

it('refuses an unknown operation or node', async () => {
  expect(await claim(uuidv7())).toMatchObject({ verdict: 'refused', reason: 'superseded' })
  expect(await claim(await setUp(), { node_id: 'other' })).toMatchObject({ verdict: 'refused', reason: 'superseded' })
})

it.each<[string, Setup]>([
  ['nothing in the way', {}],
  ['an approval of exactly this', { gate: { status: 'approved', approved_digest: 'new' } }],
  ['a gate that was bypassed', { gate: { status: 'bypassed' } }],
])('grants with %s', async (_what, setup) => {
  const operation_id = await setUp(setup)
  const { fence } = await granted(operation_id)
  const [attempt] = await attemptsOf(operation_id)
  expect(attempt).toMatchObject({
    attempt: 1,
    generation: 1,
    fence,
    fences: [String(fence)],
    phase: 'running',
    key: `${operation_id}:n:1`,
  })
  const [row] = await connection.db.select().from(nodes).where(sql`operation_id = ${operation_id}`)
  expect(row).toMatchObject({ state: 'running', attempt: 1 })
  const [gate] = await connection.db.select().from(gates).where(sql`operation_id = ${operation_id}`)
  if (setup.gate) expect(gate?.consumed_at).not.toBeNull()
})

it("compensation is granted only during a compensating cancel or at a person's request", async () => {
  const running = await setUp({ node: { state: 'succeeded' } })
  expect(await claim(running, { role: 'undo' })).toMatchObject({ reason: 'stopped' })
  const asked = await setUp({ node: { state: 'compensating' }, control: { control: 'pause' } })
  await granted(asked, { role: 'undo' })
  for (const cancel_mode of ['graceful', 'force'] as const) {
    const cancelled = await setUp({ node: { state: 'compensating' }, control: { control: 'cancel', cancel_mode } })
    expect(await claim(cancelled, { role: 'undo' })).toMatchObject({ reason: 'stopped' })
  }
  const compensating = await setUp({ control: { control: 'cancel', cancel_mode: 'compensate' } })
  await granted(compensating, { role: 'undo' })
  expect(await attemptsOf(compensating)).toMatchObject([{ role: 'undo', key: `${compensating}:n:c1` }])
})

it('of many claims of one attempt that cannot be repeated, exactly one is granted', async () => {
  const operation_id = await setUp()
  const claims = await Promise.all(Array.from({ length: 20 }, () => claim(operation_id)))
  expect(claims.filter(({ verdict }) => verdict === 'granted')).toHaveLength(1)
})

const outside = (pool: string) => ({ spec: { executor: 'external', pool, idempotent: true } })
const take = (operation_id: string) =>
  claimAttempt(
    connection.pool,
    { operation_id, node_id: 'n', role: 'run', generation: 1, attempt: 1 },
    { places: { lab: 3, many: 3 } },
  )

it('many claims of one pool are granted only as many times as it has places, however they race', async () => {
  for (let round = 1; round <= 5; round++) {
    const ids = await Promise.all(Array.from({ length: 20 }, () => setUp(outside('many'))))
    const claims = await Promise.all(ids.map(take))
    expect(claims.filter(({ verdict }) => verdict === 'granted')).toHaveLength(3)
    await connection.db.update(node_attempts).set({ phase: 'succeeded' }).where(sql`pool = 'many'`)
    await connection.pool.query(`delete from operations.pool_waits`)
  }
})

it('a claim on a full pool waits, and the oldest ones are notified when a place is free', async () => {
  const ids: string[] = []
  for (let i = 0; i < 6; i++) ids.push(await setUp(outside('lab')))
  const [first = '', second = '', third = '', ...late] = ids
  const out = new Map<string, number>()
  for (const id of [first, second, third]) {
    const claim = await take(id)
    if (claim.verdict === 'granted') out.set(id, claim.fence)
  }
  expect(out.size).toBe(3)
  for (const id of late)
    expect(await take(id)).toMatchObject({
      reason: 'executor_busy',
      closure: { kind: 'executor', id: 'lab' },
      repeated: false,
    })
  const queue = async () =>
    (await connection.pool.query('select operation_id from operations.pool_waits order by since')).rows.map(
      ({ operation_id }) => operation_id as string,
    )
  expect(await queue()).toEqual(late)
  expect(await offerPlaces(connection.db)).toBe(0)
  // An attempt's own place does not block its repeat, and another pool's place blocks nobody.
  expect(await take(first)).toMatchObject({ verdict: 'granted', repeated: true })
  expect(await take(await setUp(outside('other')))).toMatchObject({ verdict: 'granted' })
  expect(await endAttempt(connection.pool, ref(second, out.get(second) ?? 0), success)).toBeTruthy()
  expect(await offerPlaces(connection.db)).toBe(1)
  expect(await queue()).toEqual(late.slice(1))
  const told = await connection.pool.query(
    `select operation_id, payload from operations.operation_commands where kind = 'place_free'`,
  )
  expect(told.rows).toEqual([{ operation_id: late[0], payload: { node_ids: ['n'] } }])
  expect(await take(late[0] ?? '')).toMatchObject({ verdict: 'granted' })
  expect(await take(late[1] ?? '')).toMatchObject({ verdict: 'refused', reason: 'executor_busy' })
})

it('no claim is granted once a pause is committed, however they race', async () => {
  const operation_id = await setUp({ spec: { idempotent: true } })
  const { db } = connection
  let paused = false
  const pausing = db
    .transaction(async (tx) => {
      await tx.select().from(operation_control).where(sql`operation_id = ${operation_id}`).for('update')
      await tx.update(operation_control).set({ control: 'pause' }).where(sql`operation_id = ${operation_id}`)
    })
    .then(() => {
      paused = true
    })
  const late: Claim[] = []
  await Promise.all([
    pausing,
    ...Array.from({ length: 20 }, async (_, i) => {
      const begun_after = paused
      const result = await claim(operation_id, { attempt: i + 1 })
      if (begun_after) late.push(result)
    }),
  ])
  late.push(await claim(operation_id, { attempt: 50 }))
  expect(late.every(({ verdict }) => verdict === 'refused')).toBe(true)
})

describe('what the catalog said of its target', () => {
  const asked = async (seconds: number) => {
    const { rows } = await connection.pool.query<{ at: string }>(
      'select operations.iso(clock_timestamp() - make_interval(secs => $1)) as at',
      [seconds],
    )
    return { asked_at: rows[0]?.at ?? '' }
  }
  const input = (operation_id: string) =>
    ({ operation_id, node_id: 'n', role: 'run', generation: 1, attempt: 1 }) as const
  const again = { verdict: 'recheck', gate_ids: [] }

  it('is valid for five seconds; then the catalog is asked again, and no row is written', async () => {
    const operation_id = await setUp()
    expect(await claimAttempt(connection.pool, input(operation_id), await asked(6))).toEqual(again)
    expect(await connection.db.select().from(node_attempts).where(sql`operation_id = ${operation_id}`)).toEqual([])
    expect(await claimAttempt(connection.pool, input(operation_id), await asked(3))).toMatchObject({
      verdict: 'granted',
    })
  })

  it('expires while the claim waits for its locks', async () => {
    const operation_id = await setUp()
    const holder = await connection.pool.connect()
    await holder.query('begin')
    await holder.query('select from operations.operation_control where operation_id = $1 for update', [operation_id])
    const waiting = claimAttempt(connection.pool, input(operation_id), await asked(4))
    await until(
      async () => {
        const { rows } = await connection.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
           and clock_timestamp() > query_start + interval '1.2 s'`,
        )
        return rows.length > 0
      },
      { what: 'the claim waits' },
    )
    await holder.query('commit')
    holder.release()
    expect(await waiting).toEqual(again)
  })
})

it('an approval that is withdrawn while claims run is not used afterwards', async () => {
  for (let round = 0; round < 10; round++) {
    const operation_id = await setUp({ gate: { status: 'approved', approved_digest: 'new' } })
    const { db } = connection
    const [taken, result] = await Promise.all([
      db.transaction(async (tx) => {
        await tx.select().from(operation_control).where(sql`operation_id = ${operation_id}`).for('update')
        const rows = await tx
          .update(gates)
          .set({ status: 'waiting', round: 2 })
          .where(sql`operation_id = ${operation_id} and consumed_at is null`)
          .returning()
        return rows.length === 1
      }),
      claim(operation_id),
    ])
    expect(result.verdict === 'granted').toBe(!taken)
  }
})

it('a repeat of an open attempt is unknown, or granted with a larger fence if the node is idempotent', async () => {
  const once = await setUp()
  await granted(once)
  expect(await claim(once)).toMatchObject({ verdict: 'ended', phase: 'outcome_unknown' })
  expect(await attemptsOf(once)).toMatchObject([{ phase: 'outcome_unknown' }])

  const again = await setUp({ spec: { idempotent: true } })
  const first = await granted(again)
  const second = await granted(again)
  expect(second).toMatchObject({ repeated: true })
  expect(second.fence).toBeGreaterThan(first.fence)
  expect(await attemptsOf(again)).toMatchObject([
    { fence: second.fence, fences: [String(first.fence), String(second.fence)] },
  ])
})

it('behind its checkpoint an attempt continues, even while paused or if it cannot be repeated', async () => {
  const operation_id = await setUp()
  const { fence } = await granted(operation_id)
  expect(await noteAttempt(connection.pool, ref(operation_id, fence), { resume: { asked: 1 } })).toBe(true)
  await connection.db.update(operation_control).set({ control: 'pause' }).where(sql`operation_id = ${operation_id}`)
  expect(await granted(operation_id)).toMatchObject({ resume: { asked: 1 } })
})

it('a repeat that is stopped stays open for the resume, under the same number', async () => {
  const operation_id = await setUp({ spec: { idempotent: true } })
  await granted(operation_id)
  await connection.db.update(operation_control).set({ control: 'pause' }).where(sql`operation_id = ${operation_id}`)
  expect(await claim(operation_id)).toMatchObject({ verdict: 'refused', reason: 'stopped', repeated: true })
  expect(await attemptsOf(operation_id)).toMatchObject([{ phase: 'cancelled' }])
  await connection.db.update(operation_control).set({ control: 'run' }).where(sql`operation_id = ${operation_id}`)
  await granted(operation_id)
  expect(await attemptsOf(operation_id)).toMatchObject([{ attempt: 1, phase: 'running' }])
})

describe('work that no agent began', () => {
  const gate = { status: 'approved', approved_digest: 'new' } as const
  /** Its agent took it this many seconds ago. */
  const handed = async (seconds: number, started = false) => {
    const operation_id = await setUp({
      gate,
      node: { target_id: 'host' },
      spec: { executor: 'external', pool: 'idle' },
    })
    const { fence } = await granted(operation_id)
    await noteAttempt(connection.pool, ref(operation_id, fence), { resume: { handed_over: true } })
    await connection.pool.query(
      `insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at, heartbeat_at, started_at)
       values ($1::uuid::text, $1::uuid, 'n', 1, 1, $2, 'idle', 30, now() + interval '1 h', now() + interval '2 h', now() - make_interval(secs => $3), case when $4 then now() end)`,
      [operation_id, fence, seconds, started],
    )
    return operation_id
  }
  const set = async (operation_id: string, { control, node, gate: g }: Setup) => {
    const { db } = connection
    const here = sql`operation_id = ${operation_id}`
    if (control) await db.update(operation_control).set(control).where(here)
    if (node) await db.update(nodes).set(node).where(here)
    if (g) await db.update(gates).set(g).where(here)
  }
  const closure = { kind: 'catalog', id: 'host', until: 1 } as const

  it.each<[string, Setup, Setup, string, object?]>([
    ['the operation is paused', { control: { control: 'pause' } }, { control: { control: 'run' } }, 'stopped'],
    ['its gate asks again', { gate: { status: 'waiting' } }, { gate }, 'gate_open'],
    [
      'a freeze has begun',
      { control: { calendar: frozen(Date.now() + HOUR) } },
      { control: { calendar: null } },
      'frozen',
    ],
    ['a patch holds it', { node: { hold_patch_id: uuidv7() } }, { node: { hold_patch_id: null } }, 'held'],
    ['its target is not as planned', {}, {}, 'drifted', { bar: { reason: 'drifted', closure } }],
  ])('is handed over again as at a first start: not while %s', async (_what, change, undo, reason, terms = {}) => {
    const operation_id = await handed(31)
    await set(operation_id, change)
    const input = { operation_id, node_id: 'n', role: 'run', generation: 1, attempt: 1 } as const
    expect(await claimAttempt(connection.pool, input, terms)).toMatchObject({ reason, repeated: false })
    expect(await attemptsOf(operation_id)).toMatchObject([{ phase: 'cancelled', resume: null }])
    const { rows } = await connection.pool.query(
      'select n.attempt, e.closed_at is not null as closed from operations.nodes n join operations.executions e using (operation_id) where operation_id = $1',
      [operation_id],
    )
    expect(rows).toEqual([{ attempt: 0, closed: true }])
    await set(operation_id, undo)
    expect(await granted(operation_id)).toMatchObject({ repeated: false, resume: null })
    expect(await attemptsOf(operation_id)).toMatchObject([{ attempt: 1, phase: 'running' }])
  })

  it('leaves its number to a later generation, which starts like any first one', async () => {
    const operation_id = await handed(31)
    await connection.pool.query(
      `update operations.node_attempts set started_at = started_at - interval '1 h', deadline_at = deadline_at - interval '1 h' where operation_id = $1`,
      [operation_id],
    )
    await set(operation_id, { control: { control: 'pause' } })
    expect(await claim(operation_id)).toMatchObject({ reason: 'stopped', repeated: false })
    await set(operation_id, { control: { control: 'run' }, node: { generation: 2 } })
    expect(await claim(operation_id)).toMatchObject({ reason: 'superseded', generation: 2 })
    const { fence, started_at, now, ...first } = await granted(operation_id, { generation: 2 })
    expect(first).toMatchObject({ repeated: false, resume: null })
    expect(now - started_at).toBeLessThan(60_000)
    const [attempt, ...others] = await attemptsOf(operation_id)
    expect(others).toEqual([])
    expect(attempt).toMatchObject({ attempt: 1, generation: 2, phase: 'running', fence })
    expect(Date.parse(attempt?.deadline_at ?? '')).toBeGreaterThan(now)
    // Its end is the node's: both have one generation.
    expect(await endAttempt(connection.pool, ref(operation_id, fence), success)).toBeTruthy()
    const [row] = await connection.db.select().from(nodes).where(sql`operation_id = ${operation_id}`)
    expect(row).toMatchObject({ state: 'succeeded', attempt: 1 })
  })

  it('has all its time and handovers again after a claim withdrew it', async () => {
    const operation_id = await handed(31)
    const at = { operation_id, node_id: 'n', role: 'run', attempt: 1 } as const
    await connection.pool.query(
      `update operations.executions set start_before = now() - interval '1 min' where operation_id = $1`,
      [operation_id],
    )
    expect(await newestExecution(connection.pool, at)).toMatchObject({ handovers: 1, start_due: true })
    await set(operation_id, { control: { control: 'pause' } })
    expect(await claim(operation_id)).toMatchObject({ reason: 'stopped', repeated: false })
    await set(operation_id, { control: { control: 'run' } })
    const { fence } = await granted(operation_id)
    expect(await newestExecution(connection.pool, at)).toBeUndefined()
    const given = { token_sha256: uuidv7(), generation: 1, pool: 'idle', start_s: 900, heartbeat_s: 30, left_s: 60 }
    await insertExecution(connection.pool, { ...at, ...given, fence })
    const newest = await newestExecution(connection.pool, at)
    expect(newest).toMatchObject({ fence, handovers: 1, start_due: false })
    expect(newest?.start_left_s).toBeGreaterThan(800)
  })

  it('goes to another agent if all still holds, and stays with one that began or may still begin', async () => {
    expect(await granted(await handed(31))).toMatchObject({ repeated: false, resume: { handed_over: true } })
    for (const operation_id of [await handed(5), await handed(31, true)]) {
      await set(operation_id, { control: { control: 'pause' } })
      expect(await granted(operation_id)).toMatchObject({ repeated: true, resume: { handed_over: true } })
    }
  })
})

it('log lines whose answer was lost are sent again and count once, also with the end', async () => {
  const { pool } = connection
  const operation_id = await setUp()
  const { fence } = await granted(operation_id)
  const line = (seq: number) => ({ seq, time: new Date().toISOString(), stream: 'log', level: 'info', text: 'hello' })
  for (const lines of [[line(1), line(2)], [line(1), line(2)], [line(3)], [line(3)]])
    expect(await noteAttempt(pool, ref(operation_id, fence), { lines })).toBe(true)
  expect(await attemptsOf(operation_id)).toMatchObject([{ log_lines: 3, log_bytes: 15 }])
  expect(await endAttempt(pool, ref(operation_id, fence), { ...success, lines: [line(3)] })).toBeDefined()
  expect(await attemptsOf(operation_id)).toMatchObject([{ phase: 'succeeded', log_lines: 3, log_bytes: 15 }])
})

it('a chunk of a log stays the same until it is stored: an outage leaves no gap', () => {
  const log = createLog({ lines: 4, bytes: 0 }, maskerOf([]), () => new Date())
  log.add('one')
  const one = log.take()
  log.add('two')
  expect(log.take()).toEqual(one)
  expect(log.isSending()).toBe(true)
  log.done()
  expect(log.isSending()).toBe(false)
  expect(log.take()).toMatchObject([{ seq: 6, text: 'two' }])
})

it('a result counts only under the newest fence and while the attempt is open; its repeat gets the same answer', async () => {
  const { pool } = connection
  const operation_id = await setUp({ spec: { idempotent: true } })
  const old = await granted(operation_id)
  const { fence } = await granted(operation_id)
  expect(await endAttempt(pool, ref(operation_id, old.fence), success)).toBeUndefined()
  expect(await noteAttempt(pool, ref(operation_id, old.fence), { resume: { x: 1 } })).toBe(false)
  expect(await attemptsOf(operation_id)).toMatchObject([{ phase: 'running', outputs: null, resume: null }])
  const lines = [{ seq: 1, time: new Date().toISOString(), stream: 'log', level: 'info', text: 'hello' }]
  const ended = await endAttempt(pool, ref(operation_id, fence), { ...success, lines })
  expect(ended).toMatchObject({ started_at: expect.any(Number), ended_at: expect.any(Number) })
  expect(await endAttempt(pool, ref(operation_id, fence), { ...success, lines })).toEqual(ended)
  const failed = { ...success, phase: 'failed', error: { class: 'refused', message: 'no', retryable: false } } as const
  expect(await endAttempt(pool, ref(operation_id, fence), failed)).toBeUndefined()
  expect(await claim(operation_id)).toMatchObject({ verdict: 'ended', phase: 'succeeded' })
  expect(await attemptsOf(operation_id)).toMatchObject([
    { phase: 'succeeded', outputs: { x: 1 }, log_lines: 1, log_bytes: 5, log_complete: true },
  ])
  const [row] = await connection.db.select().from(nodes).where(sql`operation_id = ${operation_id}`)
  expect(row).toMatchObject({ state: 'succeeded', outputs: { x: 1 }, error: null })
})

it('a node that writes to the catalog does not succeed with its attempt alone', async () => {
  const operation_id = await setUp({ spec: { catalog: { observed_state_patch: {} } } })
  const { fence } = await granted(operation_id)
  await endAttempt(connection.pool, ref(operation_id, fence), success)
  const [row] = await connection.db.select().from(nodes).where(sql`operation_id = ${operation_id}`)
  expect(row).toMatchObject({ state: 'running', outputs: { x: 1 } })
})

it('attempt numbers only grow', async () => {
  const operation_id = await setUp()
  const { fence } = await granted(operation_id, { attempt: 3 })
  await endAttempt(connection.pool, ref(operation_id, fence, 3), success)
  expect(await claim(operation_id, { attempt: 2 })).toMatchObject({ reason: 'superseded' })
})

describe('the output of targets and programs', () => {
  it('is stored whatever characters it has: invalid ones are replaced, all others stay', async () => {
    const operation_id = await setUp()
    const { fence } = await granted(operation_id)
    const odd = 'a\0b \ud800 \\u0000 \u{1F600}'
    const kept = 'a\uFFFDb \uFFFD \\u0000 \u{1F600}'
    const line = (seq: number) => ({ seq, time: new Date().toISOString(), stream: 'stdout', level: 'info', text: odd })
    const note = { lines: [line(1)], resume: { [odd]: odd }, progress: { odd } }
    expect(await noteAttempt(connection.pool, ref(operation_id, fence), note)).toBe(true)
    const end = { ...success, inputs: { odd }, outputs: { deep: [{ [odd]: odd }] }, lines: [line(2)] }
    expect(await endAttempt(connection.pool, ref(operation_id, fence), end)).toBeDefined()
    const [attempt] = await attemptsOf(operation_id)
    expect(attempt).toMatchObject({ phase: 'succeeded', inputs: { odd: kept }, progress: { odd: kept } })
    expect(attempt?.outputs).toEqual({ deep: [{ [kept]: kept }] })
    const { rows } = await connection.pool.query('select lines from operations.log_chunks where operation_id = $1', [
      operation_id,
    ])
    expect(rows.flatMap(({ lines }) => lines.map(({ text }: { text: string }) => text))).toEqual([kept, kept])
  })
})

it('is refused while a database restore waits for acceptance, and starts above all fences of the lost future', async () => {
  const operation_id = await setUp()
  await connection.pool.query(
    `insert into operations.relay_state (name, stream_created) values ('restored', '2026-01-01T00:00:00Z')`,
  )
  const held = await claim(operation_id)
  expect(held).toMatchObject({ verdict: 'refused', reason: 'frozen', closure: { kind: 'freeze', id: 'restored' } })
  expect(held.verdict === 'refused' && (held.closure?.until ?? 0)).toBeGreaterThan(Date.now())
  await connection.pool.query(
    `update operations.relay_state set stream_created = null, epoch = 3 where name = 'restored'`,
  )
  const begun = await claim(operation_id)
  expect(begun).toMatchObject({ verdict: 'granted' })
  expect(begun.verdict === 'granted' && begun.fence).toBeGreaterThan(3 * 2 ** 40)
  await connection.pool.query(`delete from operations.relay_state where name = 'restored'`)
})
