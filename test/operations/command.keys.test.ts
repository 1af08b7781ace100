import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../apps/gateway/routes/table.ts'
import { gated, must, type Person, type Platform, person, startPlatform } from './support/platform.ts'

/** One key, one answer, on every POST that people send: repeats change nothing and get the original bytes anywhere. */
let p: Platform
let bot: Person
beforeAll(async () => {
  p = await startPlatform({ instances: 2, env: { OPERATIONS__COMMANDS__WAIT_MS: '100', NOTIFY__ENABLED: 'true' } })
  bot = person('machine:bot', ['controller'])
  bot.machine = { permissions: ['operation:read', 'signal:send'], behind: [] }
  Object.assign(p.people, { bot })
})
afterAll(() => p.stop())

const reason = 'a test'
const graph = gated()
const intent = { kind: 'graph', title: 'a test', reason, graph }
const scheduled = { when: { every_s: 3600 }, intent }
const stated = async () => must(await p.as('pia').post('/v1/intents', intent), 201).body.intent_id as string

const started = async () => {
  const { operation_id } = await p.startOperation(graph)
  return { operation_id, path: `/v1/operations/${operation_id}` }
}
const failed = async () => {
  const { operation_id, path } = await started()
  await p.query(
    `update operations.nodes set state = 'failed', attempt = 1 where operation_id = $1 and node_id = 'before'`,
    [operation_id],
  )
  return path
}
const asked = async () => {
  const { operation_id, path } = await started()
  await p.openGate(operation_id, 'go')
  return { path: `${path}/gates/go`, seen: await p.seen(operation_id, 'go') }
}
const changes = [{ op: 'update_node', node_id: 'behind', set: { with: { delay_ms: 7 } } }]
const proposal = { base_revision: 1, changes, reason }
const proposed = async () => {
  const { path } = await started()
  const { patch_id, digest } = must(await p.as('olga').post(`${path}/patches`, proposal), 201).body
  return { path: `${path}/patches/${patch_id}`, reviewed_digest: digest as string }
}

const destination = { kind: 'webhook', name: 'chat', address: 'https://hooks.invalid/in' }
const reached = async () =>
  must(await p.as('eva').post('/v1/notifications/destinations', destination), 201).body.destination_id as string

type Sent = {
  by: 'pia' | 'olga' | 'eva' | Person
  path: string
  body: Record<string, unknown>
  other: Record<string, unknown>
}
const on = (by: Sent['by'], path: string, body: Sent['body'], other: Sent['other']): Sent => ({
  by,
  path,
  body,
  other: { ...body, ...other },
})
const freezeId = () => `f-${randomUUID().slice(0, 8)}`
const frozen = {
  ...{ title: 'none', applies: 'false', from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' },
  approvers: ['netops'],
}
/** Each route with a command that it accepts now, and different content for the same key. */
const POSTS: Record<string, () => Promise<Sent>> = {
  '/v1/intents': async () => on('pia', '/v1/intents', intent, { title: 'another' }),
  '/v1/intents/{intent_id}/plan-preview': async () =>
    on('pia', `/v1/intents/${await stated()}/plan-preview`, {}, { exclude_targets: ['x'] }),
  '/v1/plans/{plan_id}/start': async () => {
    const intent_id = await stated()
    await p.query('update operations.projection set at = clock_timestamp()')
    const { plan_id, plan_hash } = must(await p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
    return on('olga', `/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash }, { max_parallel: 2 })
  },
  '/v1/operations/{operation_id}/pause': async () =>
    on('olga', `${(await started()).path}/pause`, { reason }, { reason: 'another' }),
  '/v1/operations/{operation_id}/resume': async () => {
    const { path } = await started()
    must(await p.as('olga').post(`${path}/pause`, { reason }), 200, 202)
    return on('olga', `${path}/resume`, { reason }, { acknowledge_drift: true })
  },
  '/v1/operations/{operation_id}/cancel': async () =>
    on('olga', `${(await started()).path}/cancel`, { reason }, { mode: 'compensate' }),
  '/v1/operations/{operation_id}/nodes/{node_id}/retry': async () =>
    on('olga', `${await failed()}/nodes/before/retry`, { reason }, { scope: 'node' }),
  '/v1/operations/{operation_id}/signals': async () => {
    const signal = { type: 'catalog_drift', body: { resource_ids: ['one'] } }
    return on(bot, `${(await started()).path}/signals`, signal, { body: { resource_ids: ['two'] } })
  },
  '/v1/operations/{operation_id}/interventions': async () =>
    on(
      'olga',
      `${await failed()}/interventions`,
      { type: 'skip', node_id: 'before', payload: {}, reason },
      { ticket: 'T' },
    ),
  '/v1/operations/{operation_id}/gates/{gate_id}/approve': async () => {
    const { path, seen } = await asked()
    return on('eva', `${path}/approve`, seen, { comment: 'another' })
  },
  '/v1/operations/{operation_id}/gates/{gate_id}/reject': async () => {
    const { path, seen } = await asked()
    return on('eva', `${path}/reject`, { round: seen.round, comment: 'no' }, { comment: 'another' })
  },
  '/v1/operations/{operation_id}/ballots': async () => {
    const { operation_id, path } = await started()
    const { reviewed_digest: digest, round } = await p.seen(operation_id, 'go')
    return on('eva', `${path}/ballots`, { type: 'gate', id: 'go', round, digest }, { round: round + 1 })
  },
  '/v1/operations/{operation_id}/patches': async () =>
    on('olga', `${(await started()).path}/patches`, proposal, { reason: 'another' }),
  '/v1/operations/{operation_id}/patches/{patch_id}/approve': async () => {
    const { path, reviewed_digest } = await proposed()
    return on('eva', `${path}/approve`, { reviewed_digest }, { comment: 'another' })
  },
  '/v1/operations/{operation_id}/patches/{patch_id}/reject': async () =>
    on('eva', `${(await proposed()).path}/reject`, { comment: 'no' }, { comment: 'another' }),
  '/v1/schedules': async () => on('pia', '/v1/schedules', scheduled, { proceed: 'start' }),
  '/v1/freezes': async () => on('olga', '/v1/freezes', { ...frozen, freeze_id: freezeId() }, { title: 'another' }),
  '/v1/freezes/{freeze_id}/end': async () => {
    const freeze_id = freezeId()
    must(await p.as('olga').post('/v1/freezes', { ...frozen, freeze_id }), 201)
    return on('eva', `/v1/freezes/${freeze_id}/end`, {}, { dry_run: false })
  },
  '/v1/notifications/destinations': async () =>
    on('eva', '/v1/notifications/destinations', destination, { name: 'another' }),
  '/v1/notifications/destinations/{destination_id}/confirm': async () =>
    on('eva', `/v1/notifications/destinations/${await reached()}/confirm`, { code: '00000000' }, { code: '11111111' }),
  '/v1/notifications/destinations/{destination_id}/secret': async () =>
    on('eva', `/v1/notifications/destinations/${await reached()}/secret`, {}, { overlap_s: 60 }),
  '/v1/notifications/destinations/{destination_id}/test': async () =>
    on('eva', `/v1/notifications/destinations/${await reached()}/test`, {}, { dry_run: false }),
  '/v1/notifications/deliveries/{delivery_id}/redeliver': async () => {
    const id = await reached()
    await p.query(
      `insert into operations.notify_deliveries (delivery_id, destination_id, owner, purpose, state, next_at)
       select destination_id, destination_id, owner, 'test', 'dead', clock_timestamp()
       from operations.notify_destinations where destination_id = $1`,
      [id],
    )
    return on('eva', `/v1/notifications/deliveries/${id}/redeliver`, {}, { dry_run: false })
  },
  '/v1/schedules/{schedule_id}/secret': async () => {
    const hooked = { ...scheduled, when: { webhook: { signature: 'standard' } } }
    const { schedule_id } = must(await p.as('pia').post('/v1/schedules', hooked), 201).body
    return on('pia', `/v1/schedules/${schedule_id}/secret`, {}, { overlap_s: 60 })
  },
  ...Object.fromEntries(
    (['pause', 'resume', 'run', 'end'] as const).map((act) => [
      `/v1/schedules/{schedule_id}/${act}`,
      async () => {
        const { schedule_id } = must(await p.as('pia').post('/v1/schedules', scheduled), 201).body
        return on('pia', `/v1/schedules/${schedule_id}/${act}`, {}, { reason: 'another' })
      },
    ]),
  ),
}

/** What a command leaves behind; the relay's own marks are left out. */
const left = () =>
  p.query(`select (select count(*)::int from operations.operation_commands) as commands, (select count(*)::int from operations.intents) as intents,
    (select count(*)::int from operations.plans) as plans, (select count(*)::int from operations.patches) as patches,
    (select count(*)::int from operations.votes) as votes, (select count(*)::int from operations.outbox) as events,
    (select count(*)::int from operations.operation_evidence_index) as evidence, (select count(*)::int from operations.audit) as audit`)

describe('a key', () => {
  it.each(Object.keys(POSTS))('of %s gets one answer forever', async (route) => {
    const { by, path, body, other } = await (POSTS[route] as () => Promise<Sent>)()
    await p.query('update operations.projection set at = clock_timestamp()')
    const key = randomUUID()
    const first = must(await p.as(by).post(path, body, { key }), 200, 201, 202)
    const before = await left()
    const [here, there, at_once] = await Promise.all([
      p.as(by).post(path, body, { key }),
      p.as(by).post(path, body, { key, instance: 1 }),
      p.as(by).post(path, body, { key, instance: 1, headers: { 'x-request-id': randomUUID() } }),
    ])
    // The instances derive a schedule's secret by their own first keys; each of these is accepted.
    const textOf = ({ text }: typeof first) =>
      route === '/v1/schedules/{schedule_id}/secret' ? text.replace(/whsec_[^"]+/, 'whsec_') : text
    for (const again of [here, there, at_once]) {
      expect([again.status, textOf(again)]).toEqual([first.status, textOf(first)])
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.headers.get('location')).toBe(first.headers.get('location'))
    }
    expect(await p.as(by).post(path, other, { key })).toMatchObject({
      status: 422,
      body: { category: 'validation_error', code: 'idempotency_key_reused' },
    })
    expect(await p.as(by).post(path, body, { key: null })).toMatchObject({
      status: 400,
      body: { code: 'idempotency_key_required' },
    })
    expect(await left()).toEqual(before)
  })

  it('is required by every route that changes something', () => {
    const posts = ROUTES.filter(({ upstream, method }) => upstream === 'operations' && method === 'POST')
    const paths = posts.map(({ path }) => path.replace('/api/', '/'))
    // One only decodes; taken work is new on each request; a webhook and a report count once by their own numbers.
    const without = [
      '/v1/engine/codec/decode',
      '/v1/execution-results',
      '/v1/hooks/{schedule_id}',
      '/v1/pools/{pool}/work',
    ]
    expect(paths.filter((path) => !without.includes(path)).sort()).toEqual(Object.keys(POSTS).sort())
  })
})
