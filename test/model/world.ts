import { setTimeout as delay } from 'node:timers/promises'
import { register } from '../../apps/platform/demo/catalog.ts'
import { createFleetClient } from '../../apps/platform/demo/fleet.ts'
import { createServiceSigner } from '../../apps/shared/service/tokens.ts'
import type { Stack } from '../support/stack.ts'
import type { Act, PersonBook } from './books.ts'
import { PARTS, type Part } from './books.ts'
import { chance, type Model, told } from './commands.ts'
import { GIVER, VOTERS } from './people.ts'

const opened = (): Act => ({ from: Date.now(), to: Number.POSITIVE_INFINITY, outcome: 'unknown' })
const ROLE = 'approver'
/** No part is stopped for longer, or it would be considered gone. */
const LONGEST_MS = 2500

/** What changes around the operations: people, the catalog, freezes, hosts, and the platform's own parts. */
export const createWorld = (stack: Stack, model: Model) => {
  const { crowd, dice, books, hosts } = model
  const fleet = createFleetClient(stack.url('fleet'))
  const key_file = stack.context.keys.serviceKeyFile('demo-control-plane')
  const signer = createServiceSigner({ name: 'demo-control-plane', key_file })
  const busy = new Set<string>()
  const grants = new Map<string, string>()

  /** Takes a part of someone's right away, or gives it back: more often back, so that most people have theirs. */
  const moveRight = async (): Promise<void> => {
    const name = dice.pick(VOTERS)
    const person = books.people.get(name) as PersonBook
    if (busy.has(name)) return
    busy.add(name)
    try {
      const missing = PARTS.filter((part) => !holds(person, part))
      const part = missing.length > 0 ? dice.pick(missing) : dice.pick(PARTS)
      await (missing.length > 0 ? give(person, part, giver()) : take(person, part))
    } finally {
      busy.delete(name)
    }
  }
  const giver = () => (chance(dice, 0.08) ? GIVER : 'ada')
  /** Keeps others from changing these people's rights during `work`, and afterward gives back what they lack. */
  const withRights = async (names: readonly string[], work: () => Promise<unknown>): Promise<void> => {
    if (names.some((name) => busy.has(name))) return
    for (const name of names) busy.add(name)
    try {
      await work()
      for (const person of names.map((name) => books.people.get(name) as PersonBook))
        for (const part of PARTS.filter((part) => !holds(person, part))) await give(person, part)
    } finally {
      for (const name of names) busy.delete(name)
    }
  }
  const lose = (name: string, part: Part) => take(books.people.get(name) as PersonBook, part)
  const regain = (name: string, part: Part, by: string) => give(books.people.get(name) as PersonBook, part, by)
  const hasAll = (name: string) => {
    const person = books.people.get(name) as PersonBook
    return !busy.has(name) && PARTS.every((part) => holds(person, part))
  }
  const holds = ({ parts }: PersonBook, part: (typeof PARTS)[number]) => {
    const { lost, given } = parts[part]
    const last = (acts: Act[]) =>
      Math.max(0, ...acts.filter(({ outcome }) => outcome !== 'refused').map(({ from }) => from))
    return last(given) >= last(lost)
  }
  const send = async (
    acts: (Act & { by?: string })[],
    what: string,
    method: string,
    path: string,
    { by = 'ada', body }: { by?: string; body?: unknown } = {},
  ) => {
    const act = { ...opened(), by }
    acts.push(act)
    const answer = await (by === GIVER ? crowd.of(GIVER) : crowd.admin).call(method, path, body)
    Object.assign(act, { from: answer.from, to: answer.to, outcome: answer.outcome })
    told(model, what, answer)
    return answer
  }
  const take = async (person: PersonBook, part: (typeof PARTS)[number]): Promise<void> => {
    const { name, group } = person
    const id = crowd.ids.get(name)
    const { lost } = person.parts[part]
    if (part === 'account')
      await send(lost, 'disable', 'POST', `/v1/admin/users/${id}/disable`, { body: { reason: 'the model' } })
    else if (part === 'group') await send(lost, 'leave group', 'DELETE', `/v1/admin/groups/${group}/members/${id}`)
    else {
      const grant = grants.get(name) ?? (await grantOf(id ?? ''))
      if (grant) await send(lost, 'take role', 'DELETE', `/v1/admin/grants/${grant}`)
    }
  }
  const give = async (person: PersonBook, part: (typeof PARTS)[number], by = 'ada'): Promise<void> => {
    const { name, group } = person
    const id = crowd.ids.get(name)
    const { given } = person.parts[part]
    if (part === 'account')
      await send(given, 'enable', 'POST', `/v1/admin/users/${id}/enable`, { by, body: { reason: 'the model' } })
    else if (part === 'group') await send(given, 'join group', 'PUT', `/v1/admin/groups/${group}/members/${id}`, { by })
    else {
      const body = { subject_type: 'user', subject_id: id, role: ROLE }
      const made = await send(given, 'give role', 'POST', '/v1/admin/grants', { by, body })
      if (made.outcome === 'done') grants.set(name, made.body.id)
    }
  }
  const grantOf = async (user_id: string): Promise<string | undefined> => {
    const { body } = await crowd.admin.get('/v1/admin/grants?page_size=200')
    const own = ({ subject_id, role }: { subject_id: string; role: string }) => subject_id === user_id && role === ROLE
    return body.items?.find(own)?.id
  }

  /** The catalog changes a host's value, or something that no node uses. */
  const writeCatalog = async (host = dice.pick(hosts), labels = 0.3): Promise<void> => {
    if (busy.has(host)) return
    busy.add(host)
    try {
      const { outcome, body } = await crowd.admin.get(`/v1/resources/${host}`)
      if (outcome !== 'done') return
      const at = { expected_version: body.version }
      if (chance(dice, labels)) {
        const noted = await crowd
          .of('oda')
          .call('PATCH', `/v1/resources/${host}`, { labels: { note: `n${model.next()}` }, ...at })
        return told(model, 'catalog: label', noted)
      }
      const value = `c${model.next()}`
      const act = opened()
      books.values.get(host)?.push({ value, act })
      const state = { desired_state: { release: value }, ...at }
      const answer = await crowd.admin.call('PATCH', `/v1/resources/${host}?mode=record_only`, state)
      Object.assign(act, { from: answer.from, to: answer.to, outcome: answer.outcome })
      told(model, 'catalog: value', answer)
    } finally {
      busy.delete(host)
    }
  }

  /** A control plane freezes a host for a while. */
  const freeze = async (): Promise<void> => {
    const open = books.freezes.filter(({ withdrawn }) => !withdrawn.some(({ outcome }) => outcome === 'done'))
    if (open.length > 2 || (open.length > 0 && chance(dice, 0.5))) return thaw(dice.pick(open))
    await freezeHost(dice.pick(hosts))
  }
  const freezeHost = async (host: string): Promise<void> => {
    const frozen = books.freezes.some(
      (other) => other.host === host && !other.withdrawn.some(({ outcome }) => outcome === 'done'),
    )
    if (frozen) return
    const book = { id: `f${model.next()}`, host, put: opened(), withdrawn: [] as Act[] }
    books.freezes.push(book)
    const body = {
      title: `freeze of ${host}`,
      applies: `target.resource_id == '${host}'`,
      from: new Date(Date.now() - 60_000).toISOString(),
      to: new Date(Date.now() + 3_600_000).toISOString(),
      approvers: ['storage-leads'],
    }
    await asControlPlane('PUT', book.id, body, book.put, 'freeze')
  }
  const thaw = async (book: { id: string; withdrawn: Act[] }): Promise<void> => {
    const act = opened()
    book.withdrawn.push(act)
    await asControlPlane('DELETE', book.id, undefined, act, 'thaw')
  }
  const asControlPlane = async (method: string, id: string, body: unknown, act: Act, what: string) => {
    const headers = {
      authorization: `Bearer ${signer('operations-internal')}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const from = Date.now()
    const url = `${stack.internal('operations')}/internal/v1/freezes/${id}`
    const status = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
      .then((reply) => reply.status)
      .catch(() => 0)
    const outcome = status >= 200 && status < 300 ? 'done' : status === 0 || status >= 500 ? 'unknown' : 'refused'
    const to = outcome === 'unknown' ? Number.POSITIVE_INFINITY : Date.now()
    Object.assign(act, { from, to, outcome })
    told(model, what, { from, to, outcome, status, code: '' })
  }

  /** A host is slow, refuses, or recovers. */
  const disturbHost = async (): Promise<void> => {
    const host = dice.pick(hosts)
    const fault = dice.pick([
      {},
      {},
      {},
      { delay_ms: 500 },
      { delay_ms: 6000 },
      { refuse_with: 503 },
      { refuse_with: 409 },
    ])
    const from = Date.now()
    await fleet.setFaults(host, fault)
    told(model, 'host', { from, to: Date.now(), outcome: 'done' })
  }

  /** A part of the platform dies and comes back; NATS stays away for a moment. */
  const kill = (victim: 'worker' | 'operations' | 'relay' | 'nats') => alone(() => strike(victim))
  const strike = async (victim: 'worker' | 'operations' | 'relay' | 'nats'): Promise<void> => {
    const from = Date.now()
    if (victim === 'worker') books.kills.push(from)
    const before = stack.pid(victim)
    if (victim === 'nats') {
      await stack.kill('nats')
      await delay(dice.between(1000, 4000))
      await stack.restart('nats')
    } else {
      stack.strike(victim)
      while (stack.pid(victim) === before) await delay(50)
      await stack.ready(victim)
    }
    if (victim === 'worker') books.kills.push(Date.now())
    told(model, `kill ${victim}`, { from, to: Date.now(), outcome: 'done' })
  }

  let last: Promise<unknown> = Promise.resolve()
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }
  /** A part of the platform is stopped while `work` runs: messages to it arrive later. */
  const stalled = (name: 'worker' | 'catalog' | 'nats', work: () => Promise<unknown>): Promise<void> =>
    alone(async () => {
      const from = Date.now()
      stack.pause(name)
      try {
        await Promise.race([work(), delay(LONGEST_MS)])
      } finally {
        stack.resume(name)
      }
      told(model, `stall ${name}`, { from, to: Date.now(), outcome: 'done' })
    })

  /** Everyone has every right, every host works, nothing is frozen, so that open operations can end. */
  const mend = async (): Promise<void> => {
    for (const host of hosts) await fleet.setFaults(host, {})
    for (const book of books.freezes) if (!book.withdrawn.some(({ outcome }) => outcome === 'done')) await thaw(book)
  }
  const slow = (host: string, delay_ms: number) => fleet.setFaults(host, delay_ms > 0 ? { delay_ms } : {})
  return {
    moveRight,
    withRights,
    lose,
    regain,
    hasAll,
    writeCatalog,
    freeze,
    freezeHost,
    disturbHost,
    slow,
    kill,
    stalled,
    mend,
  }
}
export type World = ReturnType<typeof createWorld>

/** A region with a data center of hosts, each with its own listener. */
export const addHosts = async (stack: Stack, count: number): Promise<string[]> => {
  const { ada } = await stack.people()
  const fleet = createFleetClient(stack.url('fleet'))
  await register(ada, { resource_id: 'r1', type_key: 'topology.region', name: 'r1', desired_state: { code: 'r1' } })
  await register(ada, {
    resource_id: 'd1',
    type_key: 'topology.datacenter',
    name: 'd1',
    parent_id: 'r1',
    desired_state: { code: 'd1' },
  })
  const names = Array.from({ length: count }, (_, i) => `host-${i + 1}`)
  for (const hostname of names) {
    const { base_url } = await fleet.putHost(hostname, { resource_id: hostname, region: 'r1', release: 'c0' })
    const state = { hostname, release: 'c0', traffic: 'in' }
    const place = {
      resource_id: hostname,
      type_key: 'fleet.host',
      name: hostname,
      parent_id: 'd1',
      lifecycle_status: 'active',
    }
    await register(
      ada,
      { ...place, desired_state: state, observed_state: { ...state, base_url } },
      { record_only: true },
    )
  }
  return names
}
