import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hostOf, seedRegion, startCatalog } from '../catalog/support/platform.ts'
import { startIdentity } from '../identity/support/harness.ts'
import { gated, must, type Platform, type Reply, startPlatform } from '../operations/support/platform.ts'
import { watchWire } from '../support/wire.ts'

/** Wake-ups, polls (for outcomes, of queued people) and the read of the fence, cached by time: they may fall into any count. */
const ASIDE =
  /pg_notify|^select [\s\S]*relay_state|scim_unaligned|factors_ended_at is not null|select "command_id", "kind", "status", "outcome"/

/** Following the log, filling search and checking packs run alongside. */
const ASIDE_CATALOG = /never/

/**
 * What a command costs on the database: statements, and round trips on its connection. A change may lower these
 * figures; raising one needs a reason in the commit. The lowest of several runs counts: answers that arrive separately
 * can add a trip.
 */
const BUDGET: Record<string, { statements: number; trips: number }> = {
  intent: { statements: 10, trips: 9 },
  'plan preview': { statements: 26, trips: 24 },
  'plan start': { statements: 37, trips: 18 },
  vote: { statements: 14, trips: 6 },
  'gate read': { statements: 9, trips: 6 },
  'voters proved': { statements: 2, trips: 2 },
  pause: { statements: 21, trips: 10 },
  'pause, tried': { statements: 15, trips: 8 },
  retry: { statements: 28, trips: 19 },
  grant: { statements: 21, trips: 20 },
  'result of an operation': { statements: 5, trips: 2 },
  create: { statements: 19, trips: 6 },
  update: { statements: 5, trips: 2 },
  relate: { statements: 17, trips: 6 },
  retire: { statements: 13, trips: 6 },
  'bulk of 40': { statements: 13, trips: 6 },
  'batch of 40': { statements: 13, trips: 6 },
}
const RUNS = 3
/** Writes sent as one statement begin with the first of them, `w0`. */
const WRITE = /^(insert|update|delete|with w0)/

let p: Platform
let wire: ReturnType<typeof watchWire>
beforeAll(async () => {
  // The relay has its own connection: only the app uses this one.
  p = await startPlatform({ linked: true })
  if (p.link) wire = watchWire(p.link, ASIDE)
})
afterAll(() => p.stop())

type Act = () => Promise<() => Promise<{ status: number; text?: string }>>

const within = async (name: string, prepare: Act, on = wire) => {
  let least = { statements: Number.POSITIVE_INFINITY, trips: Number.POSITIVE_INFINITY }
  let said: string[] = []
  for (let n = 0; n < RUNS; n++) {
    const act = await prepare()
    const cost = await on.during(async () => {
      const { status, text } = await act()
      expect(status, text).toBeLessThan(300)
    })
    if (cost.statements.length < least.statements) said = [...cost.statements]
    least = { statements: Math.min(least.statements, cost.statements.length), trips: Math.min(least.trips, cost.trips) }
  }
  // Statements that are sent with the commit are sent before it: later ones would take effect alone.
  const after = said.slice(said.lastIndexOf('commit') + 1)
  if (on === wire) expect(after.filter((text) => WRITE.test(text) && !text.includes('"idempotency"'))).toEqual([])
  const budget = BUDGET[name] ?? { statements: 0, trips: 0 }
  expect(least.statements, `${name}: ${JSON.stringify(least)}\n${said.join('\n')}`).toBeLessThanOrEqual(
    budget.statements,
  )
  expect(least.trips, `${name}: ${JSON.stringify(least)}`).toBeLessThanOrEqual(budget.trips)
}

const reason = 'a test'
const intent = () => ({ kind: 'graph', title: 'a test', reason, graph: gated() })
const stated = async () => must(await p.as('pia').post('/v1/intents', intent()), 201).body.intent_id as string
const at = (operation_id: string) => `/v1/operations/${operation_id}`
const asOlga =
  (path: string, body: object): (() => Promise<Reply>) =>
  () =>
    p.as('olga').post(path, body)

const ACTS: Record<string, Act> = {
  intent: async () => () => p.as('pia').post('/v1/intents', intent()),
  'plan preview': async () => {
    const id = await stated()
    return () => p.as('pia').post(`/v1/intents/${id}/plan-preview`, {})
  },
  'plan start': async () => {
    const id = await stated()
    const { plan_id, plan_hash } = must(await p.as('pia').post(`/v1/intents/${id}/plan-preview`, {}), 201).body
    return asOlga(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
  },
  vote: async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    const seen = await p.seen(operation_id, 'go')
    return () => p.as('eva').post(`${at(operation_id)}/gates/go/approve`, seen)
  },
  'gate read': async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    return () => p.as('eva').get(`${at(operation_id)}/gates/go`)
  },
  'voters proved': async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.openGate(operation_id, 'go')
    must(await p.as('eva').post(`${at(operation_id)}/gates/go/approve`, await p.seen(operation_id, 'go')), 200, 202)
    return () => p.service('worker').post('/internal/v1/gate-standing', { operation_id, gate_ids: ['go'] })
  },
  pause: async () => asOlga(`${at((await p.startOperation(gated())).operation_id)}/pause`, { reason }),
  'pause, tried': async () =>
    asOlga(`${at((await p.startOperation(gated())).operation_id)}/pause`, { reason, dry_run: true }),
  retry: async () => {
    const { operation_id } = await p.startOperation(gated())
    await p.query(
      `update operations.nodes set state = 'failed', attempt = 1 where operation_id = $1 and node_id = 'before'`,
      [operation_id],
    )
    return asOlga(`${at(operation_id)}/nodes/before/retry`, { reason })
  },
}

it.each(Object.keys(ACTS))('operations: %s costs no more than before', (name) => within(name, ACTS[name] as Act))

it('identity: a grant costs no more than before', async () => {
  const identity = await startIdentity({ linked: true })
  try {
    const ada = await identity.firstAdmin()
    identity.relay.runs = false
    const { user_id: subject_id } = await identity.newUser(ada)
    const roles = ['viewer', 'planner', 'operator']
    const grant: Act = async () => {
      const role = roles.shift()
      return () => ada.post('/v1/admin/grants', { subject_type: 'user', subject_id, role })
    }
    if (!identity.link) throw new Error('the link was asked for')
    await within('grant', grant, watchWire(identity.link, ASIDE))
  } finally {
    await identity.stop()
  }
})

it('catalog: a change costs no more than before, of one resource and of many', async () => {
  const c = await startCatalog({ linked: true })
  try {
    await seedRegion(c, 'eu1', 0)
    const ada = c.as('ada')
    const facts = 'mode=record_only'
    const host = () => hostOf(`h-${randomUUID()}`, 'eu1-a-web')
    const made = async () => (await ada.record(host())).resource_id as string
    const result = (resource_id: string) => ({
      command_id: randomUUID(),
      idempotency_key: randomUUID(),
      operation_id: randomUUID(),
      resource_id,
      expected_version: 1,
      changes: { observed_state_patch: { release: '2.0.0' } },
    })
    const acts: Record<string, Act> = {
      'result of an operation': async () => {
        const id = await made()
        return () => c.result(id, result(id))
      },
      create: async () => () => ada.post(`/v1/resources?${facts}`, host()),
      update: async () => {
        const id = await made()
        return () => c.as('olga').patch(`/v1/resources/${id}`, { labels: { a: 'b' }, expected_version: 1 })
      },
      relate: async () => {
        const [id, target_id] = [await made(), await made()]
        const changes = { relationship_changes: [{ op: 'add', type_key: 'depends_on', target_id }] }
        return () => c.result(id, { expected_version: 1, changes })
      },
      retire: async () => {
        const service = { type_key: 'infra.service', name: `s-${randomUUID()}`, lifecycle_status: 'active' }
        const { resource_id: id } = await ada.record(service)
        return () => ada.patch(`/v1/resources/${id}?${facts}`, { lifecycle_status: 'retired', expected_version: 1 })
      },
      'bulk of 40': async () => {
        const ids = await Promise.all(Array.from({ length: 40 }, made))
        const items = ids.map((resource_id) => ({
          op: 'update',
          change: { resource_id, expected_version: 1, patch: { labels: { a: 'b' } } },
        }))
        return () => c.as('olga').post('/v1/resources:bulk', { items })
      },
      'batch of 40': async () => {
        const ids = await Promise.all(Array.from({ length: 40 }, made))
        const items = ids.map((id) => ({ kind: 'apply', command: result(id) }))
        return () => c.internally('POST', '/resources:batch-apply', { mode: 'independent', items })
      },
    }
    if (!c.link) throw new Error('the link was asked for')
    const seen = watchWire(c.link, ASIDE_CATALOG)
    for (const [name, act] of Object.entries(acts)) await within(name, act, seen)
  } finally {
    await c.stop()
  }
}, 120_000)
