import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../../apps/platform/demo/catalog.ts'
import type { Person } from '../../apps/platform/demo/client.ts'
import { createFleetClient, type FleetClient } from '../../apps/platform/demo/fleet.ts'
import {
  approveGate,
  releaseIntent,
  startOperation,
  waitForEnd,
  waitForGate,
} from '../../apps/platform/demo/operations.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The fleet's own ledger is the witness: another process writes it, before each answer. */
type Effect = {
  id: number
  hostname: string
  operation_id: string | null
  node_id: string
  key: string
  effect: string
  detail: string
}

const HOSTS = 6
let stack: Stack
let fleet: FleetClient
let admin: Person
let olga: Person
let eva: Person

beforeAll(async () => {
  stack = await startStack({ own_servers: ['temporal'] })
  fleet = createFleetClient(stack.url('fleet'))
  const people = await stack.people()
  admin = people.ada
  olga = people.olga
  eva = people.eva
  await register(admin, { resource_id: 'r1', type_key: 'topology.region', name: 'r1', desired_state: { code: 'r1' } })
  await register(admin, {
    resource_id: 'd1',
    type_key: 'topology.datacenter',
    name: 'd1',
    parent_id: 'r1',
    desired_state: { code: 'd1' },
  })
}, 180_000)
afterAll(() => stack?.stop(), 60_000)

const addHosts = async (name: string, length = HOSTS): Promise<string[]> => {
  const hosts = Array.from({ length }, (_, i) => `${name}-${i + 1}`)
  for (const hostname of hosts) {
    const { base_url } = await fleet.putHost(hostname, { resource_id: hostname, region: 'r1', release: '1.0.0' })
    await fleet.setFaults(hostname, { delay_ms: 150 })
    const resource = {
      resource_id: hostname,
      type_key: 'fleet.host',
      name: hostname,
      parent_id: 'd1',
      lifecycle_status: 'active',
      desired_state: { hostname, release: '1.0.0', traffic: 'in' },
      observed_state: { hostname, base_url, release: '1.0.0', traffic: 'in' },
    }
    await register(admin, resource, { record_only: true })
  }
  return hosts
}

const effectsOf = async (operation_id: string): Promise<Effect[]> => {
  const reply = await fetch(`${stack.url('fleet')}/ledger?limit=10000`)
  const { items } = (await reply.json()) as { items: Effect[] }
  return items.filter((effect) => effect.operation_id === operation_id)
}

it('a host changed outside the catalog is left alone: the release pauses and names the difference', async () => {
  const hosts = await addHosts('behind')
  const [canary = ''] = hosts
  await fleet.putHost(canary, { release: '1.0.7' })
  const { operation_id } = await startOperation(olga, 'behind', releaseIntent('behind', hosts, '2.0.0'))
  const read = () =>
    eva.get<{ status: string; pause_reason: string; blocked_on: unknown }>(`/v1/operations/${operation_id}`)
  await until(async () => (await read()).status === 'paused', { what: 'the pause' })
  const message = expect.stringContaining('/body/release is "1.0.7", but the plan expects "1.0.0"')
  expect(await read()).toMatchObject({
    pause_reason: 'target_drift',
    blocked_on: [{ kind: 'paused' }, { kind: 'failed_node', id: `drain.${canary}`, message }],
  })
  expect(await effectsOf(operation_id)).toEqual([])
  await olga.post(`/v1/operations/${operation_id}/cancel`, { reason: 'the end' })
}, 120_000)

describe('kill -9 in the middle of an operation', () => {
  it.each(['worker', 'operations', 'relay', 'temporal', 'catalog'] as const)(
    'of %s: it ends correctly, every effect happens once, and none is lost',
    async (victim) => {
      const hosts = await addHosts(`kill-${victim}`)
      const { operation_id } = await startOperation(
        olga,
        `kill ${victim}`,
        releaseIntent(`kill ${victim}`, hosts, '2.0.0'),
      )
      await approveGate(eva, operation_id, await waitForGate(eva, operation_id), 'go')
      await until(async () => (await effectsOf(operation_id)).length >= 6, {
        timeout_ms: 60_000,
        what: 'the batch after the canary',
      })
      await stack.kill(victim, 'SIGKILL')
      await stack.restart(victim)

      const ended = await waitForEnd(eva, operation_id, 120_000)
      expect(ended.status).toBe('succeeded')
      const effects = await effectsOf(operation_id)
      const expected = hosts.flatMap((hostname) =>
        ['deploy', 'drain', 'undrain'].map((effect) => `${hostname} ${effect}`),
      )
      expect(effects.map(({ hostname, effect }) => `${hostname} ${effect}`).sort()).toEqual(expected.sort())
      const answered = (await fleet.hosts()).filter((host) => hosts.includes(host.hostname))
      expect(answered.map(({ release, traffic }) => `${release} ${traffic}`)).toEqual(hosts.map(() => '2.0.0 in'))
      const resources = await Promise.all(
        hosts.map((id) => eva.get<{ version: number; observed_state: { release: string } }>(`/v1/resources/${id}`)),
      )
      expect(resources.map(({ version, observed_state }) => `${version} ${observed_state.release}`)).toEqual(
        hosts.map(() => '2 2.0.0'),
      )
    },
    240_000,
  )
})

type Run = { state: string; operation_id: string }
/** A delivery as Standard Webhooks signs it. */
const deliver = async (schedule_id: string, secret: string): Promise<string> => {
  const [id, at, body] = [`delivery-${schedule_id}`, String(Math.floor(Date.now() / 1000)), '{"ref":"main"}']
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = `v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`
  const headers = { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature }
  const answer = await fetch(`${stack.gateway_url}/api/v1/hooks/${schedule_id}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  return ((await answer.json()) as { status: string }).status
}

describe('schedules that are due while Temporal is away', () => {
  it.each(['SIGSTOP', 'SIGKILL'] as const)(
    'after %s: each is planned and started once, its gate asks, and each effect happens once',
    async (signal) => {
      const name = signal.toLowerCase()
      const [timed = '', hooked = ''] = await addHosts(`due-${name}`, 2)
      const late = `late-${name}-1`
      const schedule = async (when: object, action_key: string, host?: string) => {
        const targets = host && { targets: [{ resource_id: host }] }
        const intent = { kind: 'action', title: action_key, reason: 'a test', action: { action_key }, ...targets }
        const body = { when, intent, proceed: 'start' }
        const made = await olga.post<{ schedule_id: string }>('/v1/schedules', body, `${name} ${host ?? late}`)
        return made.body.schedule_id
      }
      const ids = {
        timed: await schedule({ at: new Date(Date.now() + 8000).toISOString() }, 'rotate_certificate', timed),
        met: await schedule({ on: { type_key: 'fleet.host', when: `target.name == '${late}'` } }, 'restart'),
        hooked: await schedule({ webhook: { signature: 'standard' } }, 'restart', hooked),
      }
      const { secret } = (
        await olga.post<{ secret: string }>(`/v1/schedules/${ids.hooked}/secret`, {}, `${name} secret`)
      ).body
      if (signal === 'SIGSTOP') stack.pause('temporal')
      else await stack.kill('temporal', signal)
      await addHosts(`late-${name}`, 1)
      expect(await Promise.all([1, 2].map(() => deliver(ids.hooked, secret)))).toEqual(
        expect.arrayContaining(['accepted', 'duplicate']),
      )
      const runsOf = async (id: string) => (await olga.get<{ runs: Run[] }>(`/v1/schedules/${id}`)).runs
      const started = (id: string) =>
        until(
          async () => {
            const [run] = await runsOf(id)
            if (run?.state === 'started') return run.operation_id
            throw new Error(JSON.stringify(run))
          },
          { what: 'a started run' },
        )
      const [rotation = '', ...restarts] = await Promise.all(Object.values(ids).map(started))
      if (signal === 'SIGSTOP') stack.resume('temporal')
      else await stack.restart('temporal')
      await approveGate(eva, rotation, await waitForGate(eva, rotation), 'rotate it')
      const hosts = { [rotation]: timed, [restarts[0] ?? '']: late, [restarts[1] ?? '']: hooked }
      for (const [operation_id, host] of Object.entries(hosts)) {
        expect((await waitForEnd(eva, operation_id, 120_000)).status).toBe('succeeded')
        const effects = operation_id === rotation ? ['rotate-certificate'] : ['drain', 'restart', 'undrain']
        const did = (await effectsOf(operation_id)).map(({ hostname, effect }) => `${hostname} ${effect}`)
        expect(did).toEqual(effects.map((effect) => `${host} ${effect}`))
      }
      for (const id of Object.values(ids)) expect(await runsOf(id)).toHaveLength(1)
    },
    240_000,
  )
})

describe('kill -9 of operations between the two steps of a long change', () => {
  type Accepted = { operation_ref: { intent_id: string; href: string; operation_id: null } }
  type Intent = { intent_id: string; title: string }

  it('leads to exactly one intent for each, however often it is sent and whenever it is killed', async () => {
    const asked = new Map<string, string>()
    /** New hosts are requested; the catalog answers 202 whether or not operations is up. Each request is sent twice. */
    const ask = (names: string[]) =>
      Promise.all(
        names.map(async (name) => {
          const desired_state = { hostname: name, release: '1.0.0' }
          const body = { resource_id: name, type_key: 'fleet.host', name, parent_id: 'd1', desired_state }
          const send = () => olga.post<Accepted>('/v1/resources', body, `long change ${name}`)
          const [one, two] = [await send(), await send()]
          expect([one.status, two.status]).toEqual([202, 202])
          expect(two.body).toEqual(one.body)
          asked.set(name, one.body.operation_ref.intent_id)
        }),
      )
    const intents = async () => {
      const items: Intent[] = []
      for (let token = ''; ; ) {
        const page = await olga.get<{ items: Intent[]; next_page_token: string | null }>(
          `/v1/intents?page_size=100${token && `&page_token=${token}`}`,
        )
        items.push(...page.items)
        if (!page.next_page_token) return items
        token = page.next_page_token
      }
    }
    const made = async () => (await intents()).filter(({ intent_id }) => [...asked.values()].includes(intent_id)).length
    const names = (round: number) => Array.from({ length: 20 }, (_, i) => `long-${round}-${i}`)

    for (const round of [1, 2, 3]) {
      await stack.kill('operations', 'SIGKILL')
      await ask(names(round))
      const before = asked.size - 20
      await stack.restart('operations')
      // In the middle of it, if it is slow enough to have one.
      await until(async () => (await made()) > before, { timeout_ms: 60_000, every_ms: 5, what: 'the first intents' })
    }
    await until(async () => (await made()) >= asked.size, { what: 'an intent for each' })
    const all = await intents()
    for (const [name, intent_id] of asked) {
      const of_it = all.filter(({ title }) => title === `Create fleet.host ${name}`)
      expect(of_it.map((intent) => intent.intent_id)).toEqual([intent_id])
    }
  }, 240_000)
})
