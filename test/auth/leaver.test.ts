import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DemoPerson, type DemoProvider, startProvider } from '../../apps/platform/demo/provider.ts'
import { bearerOf, createBrowser } from '../session/support/sso.ts'
import { scratchFolder } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** The whole path of a lost right: the company's directory, identity, relay, operations, and the engine that waits. */

const NAMES = ['lea', 'leo']
const PEOPLE: DemoPerson[] = NAMES.map((name) => ({ sub: `s-${name}`, name, groups: [] }))
const dir = scratchFolder()
let provider: DemoProvider
let stack: Stack
let people: Awaited<ReturnType<Stack['people']>>
let key: string
let group: string
beforeAll(async () => {
  provider = await startProvider({ port: 0, people: PEOPLE })
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), provider.client_secret)
  const corp = {
    ...{ id: 'corp', title: 'Example Corp', issuer: provider.issuer, client_id: provider.client_id },
    ...{ client_secret: 'secret://file/corp', scim: { machine: 'machine:dir' }, max_role: 'approver' },
    groups: { map: { noc: { groups: ['netops'], roles: ['approver'] } } },
  }
  // JSON is YAML.
  const file = join(dir, 'providers.yaml')
  writeFileSync(file, JSON.stringify({ format: 'signalbox/providers@1', providers: [corp] }))
  stack = await startStack({
    apps: ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway'],
    env_overrides: { AUTH__PROVIDERS__FILE: file },
  })
  people = await stack.people()
  const { ada } = people
  const [owner] = (await ada.get<{ items: { id: string }[] }>('/v1/admin/users?q=ada')).items
  const machine = await ada.post<{ id: string }>('/v1/admin/machines', { name: 'dir', owners: [owner?.id] })
  const credential = { kind: 'key', name: 'test', permissions: ['scim:write'] }
  key = (await ada.post<{ key: string }>(`/v1/admin/machines/${machine.body.id}/credentials`, credential)).body.key
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:Group']
  group = `/Groups/${(await scim('POST', '/Groups', { schemas, displayName: 'noc' })).id}`
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  await provider?.stop()
  rmSync(dir, { recursive: true })
}, 60_000)

const scim = async (method: string, path: string, body: object) => {
  const reply = await fetch(`${stack.gateway_url}/scim/v2${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/scim+json' },
    body: JSON.stringify(body),
  })
  const text = await reply.text()
  expect(reply.ok, `${method} ${path}: ${reply.status} ${text}`).toBe(true)
  return JSON.parse(text || '{}') as { id: string }
}
const patch = (path: string, operation: object) =>
  scim('PATCH', path, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [operation] })

/** The directory hires a person into the group that decides. */
const hire = async (name: string) => {
  const user = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], externalId: `s-${name}`, active: true }
  const { id } = await scim('POST', '/Users', { ...user, userName: name })
  await patch(group, { op: 'Add', path: 'members', value: [{ value: id }] })
  return id
}

type Event = { type: string; gate_id: string | null; node_id: string | null }
type Gate = { status: string; round: number; digest: string }
const gateOf = (operation_id: string, gate_id: string) =>
  people.eva.get<Gate>(`/v1/operations/${operation_id}/gates/${gate_id}`)

/** An operation whose one node waits for two gates: the first can be passed without being used. */
const waiting = async () => {
  const gate = (gate_id: string) => {
    return { gate_id, policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['behind'] }
  }
  const graph = { nodes: [{ node_id: 'behind', executor: 'noop', with: {} }], gates: [gate('go'), gate('later')] }
  const stated = { kind: 'graph', title: 'A leaver', reason: 'to see', targets: [], graph }
  const { olga } = people
  const intent = await olga.post<{ intent_id: string }>('/v1/intents', stated)
  const path = `/v1/intents/${intent.body.intent_id}/plan-preview`
  const plan = (await olga.post<{ plan_id: string; plan_hash: string }>(path, {})).body
  const start = { reviewed_plan_hash: plan.plan_hash }
  const { operation_id } = (await olga.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, start)).body
  for (const gate_id of ['go', 'later'])
    await until(async () => (await gateOf(operation_id, gate_id)).status === 'waiting', { what: `the gate ${gate_id}` })
  return operation_id
}

it.each([
  ['lea', 'is deactivated', 'voter_disabled'],
  ['leo', 'leaves the group', 'voter_lost_right'],
])(
  'voids the vote of %s, who %s in the directory: the gate asks again within seconds',
  async (name, how, why) => {
    const id = await hire(name)
    const operation_id = await waiting()
    const browser = createBrowser(stack.gateway_url, stack.gateway_url)
    expect(await browser.signIn(`s-${name}`)).toMatchObject({ status: 303, location: '/inbox' })
    const headers = {
      ...(await bearerOf(browser)),
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    }
    const { digest, round } = await gateOf(operation_id, 'go')
    const vote = { reviewed_digest: digest, round }
    const path = `/v1/operations/${operation_id}/gates/go/approve`
    const voted = await browser.go(`/api${path}`, { method: 'POST', headers, body: JSON.stringify(vote) })
    expect(voted.body).toMatchObject({ status: 'approved' })

    if (how === 'is deactivated') await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
    else await patch(group, { op: 'Remove', path: `members[value eq "${id}"]` })
    await until(async () => (await gateOf(operation_id, 'go')).round === 2, { what: 'the next round of the gate' })
    expect(await gateOf(operation_id, 'go')).toMatchObject({ status: 'waiting' })
    const timeline = async () =>
      (await people.eva.get<{ events: Event[] }>(`/v1/operations/${operation_id}/timeline`)).events
    expect((await timeline()).filter(({ type }) => type === 'gate.reopened')).toMatchObject([
      { gate_id: 'go', data: { round: 2, why, voters: [{ name, why }] } },
    ])

    // Only a vote that counts releases the node.
    const approve = async (gate_id: string) => {
      const { digest, round } = await gateOf(operation_id, gate_id)
      const at = `/v1/operations/${operation_id}/gates/${gate_id}/approve`
      await people.eva.post(at, { reviewed_digest: digest, round })
    }
    const statusOf = async () => (await people.eva.get<{ status: string }>(`/v1/operations/${operation_id}`)).status
    await approve('later')
    await approve('go')
    await until(async () => (await statusOf()) === 'succeeded', {
      what: 'the end of the operation',
      timeout_ms: 30_000,
    })
    const steps = ['gate.approved', 'gate.reopened', 'node.succeeded']
    const told = (await timeline()).filter(({ type }) => steps.includes(type))
    expect(told.map(({ type, gate_id, node_id }) => `${type} ${gate_id ?? node_id}`)).toEqual([
      'gate.approved go',
      'gate.reopened go',
      'gate.approved later',
      'gate.approved go',
      'node.succeeded behind',
    ])
  },
  120_000,
)
