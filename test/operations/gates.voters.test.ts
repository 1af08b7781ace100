import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { rightsChanged } from '../../apps/operations/gates/standing.ts'
import { prefixed } from '../../apps/shared/events/events.ts'
import { claimAttempt } from '../../db/operations/nodes/claim.ts'
import { until } from '../support/until.ts'
import { must, type Person, type Platform, person, problem, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '200' } })
})
afterAll(() => p.stop())

/** Ways to lose a right, and how they are reported. */
const DISABLED = { disabled: true }
const LOSSES: [string, Partial<Person>, string][] = [
  ['is disabled', DISABLED, 'voter_disabled'],
  ['leaves the group', { groups: [] }, 'voter_lost_right'],
  ['loses the role', { roles: ['viewer'] }, 'voter_lost_right'],
  ['keeps it elsewhere only', { scope: { regionId: 'us1' } }, 'voter_lost_right'],
]
let restore = () => {}
/** Restores the people after each test. Who may decide is asked anew, however long ago the last test asked. */
const lose = (name: 'eva' | 'both' | 'ivo', how: Partial<Person>) => {
  const before = structuredClone(p.people[name])
  Object.assign(p.people[name], how)
  p.deps.trust.approvers.drop()
  restore = () => {
    p.deps.trust.approvers.drop()
    p.deps.trust.principals.drop('all')
    delete p.people[name].disabled
    delete p.people[name].scope
    delete p.people[name].given
    Object.assign(p.people[name], before)
  }
}
afterEach(() => {
  restore()
  restore = () => {}
  p.identity.away = false
})

type Graph = { nodes: object[]; gates: { gate_id: string; policy: object; guards: string[] }[] }
const alone = (approvals: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Graph => ({
  nodes: [{ node_id: 'behind', executor: 'noop', with: {} }],
  gates: [
    {
      gate_id: 'go',
      policy: { approvals: { groups: [{ group: 'netops', min: 1 }], ...approvals }, ...more },
      guards: ['behind'],
    },
  ],
})
const waiting = async (graph = alone()) => {
  const { operation_id } = await p.startOperation(graph)
  await p.openGate(operation_id, 'go')
  const path = `/v1/operations/${operation_id}/gates/go`
  const approve = async (who: 'eva' | 'ada' | 'both') =>
    p.as(who).post(`${path}/approve`, await p.seen(operation_id, 'go', who))
  return { operation_id, path, approve }
}
type Row = { status: string; round: number; consumed: boolean; open: number }
const gateOf = async (operation_id: string) =>
  (
    await p.query<Row>(
      `select g.status, g.round, consumed_at is not null as consumed, o.open_gates as open from operations.gates g join operations.operations o using (operation_id)
       where g.operation_id = $1 and g.gate_id = 'go'`,
      [operation_id],
    )
  )[0]
const votesOf = (operation_id: string) =>
  p.query(
    `select actor ->> 'name' as name, round, voided from operations.votes where operation_id = $1 order by round, at, user_id`,
    [operation_id],
  )
const told = async (operation_id: string, type: string) =>
  must(await p.as('vic').get(`/v1/operations/${operation_id}/timeline?types=${type}`), 200).body.events
const records = async (operation_id: string) =>
  must(await p.as('vic').get(`/v1/operations/${operation_id}/evidence`), 200).body.records

describe('before rights are taken away, what open gates would lose', () => {
  const root = person('root', ['admin'])
  beforeAll(() => {
    Object.assign(p.people, { root })
  })
  const losing = async (query: string, operation_id: string) => {
    const { items } = must(await p.as(root).get(`/v1/gates/losing?${query}`), 200).body
    return items.find((row: { operation_id: string }) => row.operation_id === operation_id)
  }

  it('is a voter or a vote, and a gate that too few could approve; it is what then happens', async () => {
    const { eva, ivo } = p.people
    const { operation_id, path, approve } = await waiting(alone({ quorum: 2, groups: [{ group: 'netops', min: 2 }] }))
    const free = async () => {
      const { eligible, votes } = must(await p.as('vic').get(path), 200).body
      const voted = new Set(votes.map(({ actor }: { actor: { name: string } }) => actor.name))
      return eligible.filter(({ name }: { name: string }) => !voted.has(name)).length
    }
    p.deps.trust.approvers.drop()
    const before = await free()
    const row = { gate_id: 'go', votes_lost: 0, voters_left: before - 1, blocked: false }
    expect(await losing(`user_id=${eva.id}`, operation_id)).toMatchObject(row)
    expect(await losing(`user_id=${eva.id}&group=netops`, operation_id)).toMatchObject(row)
    const grants = (await p.deps.trust.approvers.list()).find(({ user }) => user.id === eva.id)?.grants
    expect(await losing(`grant_id=${grants?.[0]?.id}`, operation_id)).toMatchObject(row)
    expect(await losing('group=netops', operation_id)).toMatchObject({ voters_left: 0, blocked: true })
    for (const other of [`user_id=${ivo.id}`, `user_id=${eva.id}&group=storage`, 'group=storage', 'grant_id=none'])
      expect([other, await losing(other, operation_id)]).toEqual([other, undefined])

    must(await approve('eva'), 200, 202)
    expect(await losing(`user_id=${eva.id}`, operation_id)).toMatchObject({ ...row, votes_lost: 1 })
    lose('eva', DISABLED)
    expect(await free()).toBe(row.voters_left)
    // Who is gone already has no vote left to lose.
    expect(await losing(`user_id=${eva.id}`, operation_id)).toBe(undefined)
  })

  it('is the vote of a person who stays in another of its groups', async () => {
    const groups = ['netops', 'netops-leads'].map((group) => ({ group, min: 1 }))
    const { operation_id, path } = await waiting(alone({ quorum: 2, groups }))
    const vote = { ...(await p.seen(operation_id, 'go', 'ada')), as_group: 'netops' }
    must(await p.as('ada').post(`${path}/approve`, vote), 200, 202)
    p.deps.trust.approvers.drop()
    const query = `user_id=${p.people.ada.id}&group=netops`
    expect(await losing(query, operation_id)).toMatchObject({ votes_lost: 1 })
  })

  it('is the vote that another person gave in the place of this one', async () => {
    const { operation_id, path } = await waiting(alone({ quorum: 2 }))
    const payload = { gate_id: 'go', to_user: p.people.ivo.id, until: new Date(Date.now() + 3_600_000).toISOString() }
    const delegated = { type: 'delegate_gate', payload, reason: 'away' }
    must(await p.as('both').post(`/v1/operations/${operation_id}/interventions`, delegated), 201, 202)
    must(await p.as('ivo').post(`${path}/approve`, await p.seen(operation_id, 'go', 'ivo')), 200, 202)
    p.deps.trust.approvers.drop()
    expect(await losing(`user_id=${p.people.both.id}`, operation_id)).toMatchObject({ votes_lost: 1 })
    expect(await losing(`user_id=${p.people.eva.id}`, operation_id)).toMatchObject({ votes_lost: 0 })
  })

  it('is for administrators: the answer shows who is in a group', async () => {
    expect(problem(await p.as('vic').get('/v1/gates/losing?group=netops'))).toBe('403 policy_denied/permission_missing')
  })

  it('is not said of an empty list, nor without identity', async () => {
    expect(must(await p.as(root).get('/v1/gates/losing'), 200).body).toEqual({ items: [] })
    expect(problem(await p.as(root).get('/v1/gates/losing?grant_id=a&group=netops'))).toBe(
      '400 validation_error/schema_violation',
    )
    p.identity.away = true
    p.deps.trust.approvers.drop()
    expect(problem(await p.as(root).get('/v1/gates/losing?group=netops'))).toBe('503 internal_error/unavailable')
  })
})

describe('the vote that would complete a quorum', () => {
  it.each(LOSSES)('excludes a voter who %s: the vote is void, and the gate keeps waiting', async (_what, how, why) => {
    const { operation_id, approve } = await waiting(alone({ quorum: 2 }))
    expect(must(await approve('eva'), 200, 202).body.status).toBe('waiting')
    lose('eva', how)
    expect(must(await approve('ada'), 200, 202).body).toMatchObject({
      status: 'waiting',
      votes: [{ actor: { name: 'ada' } }],
    })
    expect(await votesOf(operation_id)).toEqual([
      { name: 'eva', round: 1, voided: true },
      { name: 'ada', round: 1, voided: false },
    ])
    expect(await told(operation_id, 'gate.vote_voided')).toMatchObject([
      { gate_id: 'go', reason: expect.stringMatching(/^The approval of eva no longer counts: /), data: { why } },
    ])
    const { brief } = must(await p.as('vic').get(`/v1/operations/${operation_id}/gates/go`), 200).body
    expect(brief.void_votes).toEqual([{ name: 'eva', why, round: 1 }])
    expect((await records(operation_id)).map(({ statement }: { statement: string }) => statement)).toContainEqual(
      expect.stringContaining('The approval of eva no longer counts'),
    )
    expect(must(await approve('both'), 200, 202).body.status).toBe('approved')
  })

  it('is told to later voters until that person votes again, or two rounds have passed', async () => {
    const { operation_id, path, approve } = await waiting(alone({ quorum: 3 }))
    must(await approve('eva'), 200, 202)
    must(await approve('both'), 200, 202)
    lose('eva', { roles: ['viewer'] })
    must(await approve('ada'), 200, 202)
    const names = async () => {
      const { brief } = must(await p.as('vic').get(path), 200).body
      return brief.void_votes.map(({ name }: { name: string }) => name)
    }
    const reach = (round: number) =>
      p.query(`update operations.gates set round = $2 where operation_id = $1`, [operation_id, round])
    for (const [round, said] of [
      [2, ['eva']],
      [3, []],
      [1, ['eva']],
    ] as const) {
      await reach(round)
      expect(await names()).toEqual(said)
    }
    restore()
    expect(must(await approve('eva'), 200, 202).body.status).toBe('approved')
    expect(await names()).toEqual([])
  })

  it('is refused while identity cannot confirm the other voters, and changes nothing', async () => {
    const { operation_id, approve } = await waiting(alone({ quorum: 2 }))
    must(await approve('eva'), 200, 202)
    const ada = await p.seen(operation_id, 'go', 'ada')
    p.identity.away = true
    const refused = await p.as('ada').post(`/v1/operations/${operation_id}/gates/go/approve`, ada)
    expect(refused.status).toBe(503)
    p.identity.away = false
    expect(await votesOf(operation_id)).toEqual([{ name: 'eva', round: 1, voided: false }])
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
  })
})

describe('a patch', () => {
  const proposed = async (policy = {}) => {
    const { operation_id } = await p.startOperation(alone({ quorum: 2, ...policy }))
    const path = `/v1/operations/${operation_id}`
    const { plan_revision } = must(await p.as('vic').get(path), 200).body
    const node = { node_id: 'more', executor: 'noop', with: {}, depends_on: ['behind'] }
    const body = { base_revision: plan_revision, changes: [{ op: 'add_node', node }], reason: 'a test' }
    const { patch_id, digest } = must(await p.as('olga').post(`${path}/patches`, body), 201, 202).body
    const approve = (who: 'eva' | 'ada' | 'both' | 'ivo') =>
      p.as(who).post(`${path}/patches/${patch_id}/approve`, { reviewed_digest: digest })
    return { operation_id, approve }
  }

  it.each(LOSSES)('is not approved with the vote of a person who %s', async (_what, how, why) => {
    const { operation_id, approve } = await proposed()
    expect(must(await approve('eva'), 200, 202).body.status).toBe('awaiting_approval')
    lose('eva', how)
    expect(must(await approve('ada'), 200, 202).body).toMatchObject({
      status: 'awaiting_approval',
      votes: [{ actor: { name: 'ada' } }],
    })
    expect(await told(operation_id, 'patch.vote_voided')).toMatchObject([
      { reason: expect.stringContaining('The approval of eva no longer counts'), data: { why } },
    ])
    expect(must(await approve('both'), 200, 202).body.status).toBe('approved')
  })

  it('counts the vote of a person who has changed groups only for those that are left', async () => {
    const groups = [
      { group: 'netops', min: 1 },
      { group: 'storage', min: 1 },
    ]
    const { approve } = await proposed({ groups })
    expect(must(await approve('eva'), 200, 202).body.status).toBe('awaiting_approval')
    lose('eva', { groups: ['storage'] })
    expect(must(await approve('ivo'), 200, 202).body.status).toBe('awaiting_approval')
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
  })

  it.each(LOSSES)('does not start once its voter %s, until another vote replaces it', async (_what, how, why) => {
    const graph = { nodes: [{ node_id: 'behind', executor: 'noop', with: {} }], gates: [] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    const { plan_revision } = must(await p.as('vic').get(path), 200).body
    const node = { node_id: 'more', executor: 'noop', with: {}, depends_on: ['behind'] }
    const body = { base_revision: plan_revision, changes: [{ op: 'add_node', node }], reason: 'a test' }
    const { patch_id, digest } = must(await p.as('olga').post(`${path}/patches`, body), 201, 202).body
    must(await p.as('eva').post(`${path}/patches/${patch_id}/approve`, { reviewed_digest: digest }), 200, 202)
    const gate_id = `patch-${patch_id}`
    const claim = () =>
      claimAttempt(p.deps.pool, { operation_id, node_id: 'more', role: 'run', generation: 1, attempt: 1 })
    expect(await claim()).toMatchObject({ verdict: 'recheck', gate_ids: [gate_id] })
    lose('eva', how)
    if (how.groups) p.people.eva.roles = ['viewer']
    const standing = { operation_id, gate_ids: [gate_id] }
    expect((await p.service('worker').post('/internal/v1/gate-standing', standing)).status).toBe(204)
    expect(await claim()).toMatchObject({ verdict: 'refused', reason: 'gate_open' })
    const said = why === 'voter_disabled' ? why : 'voter_lost_right'
    expect(await told(operation_id, 'gate.reopened')).toMatchObject([{ gate_id, data: { why: said } }])
    const seen = await p.seen(operation_id, gate_id, 'ada')
    must(await p.as('ada').post(`${path}/gates/${gate_id}/approve`, seen), 200, 202)
    expect((await p.service('worker').post('/internal/v1/gate-standing', standing)).status).toBe(204)
    expect(await claim()).toMatchObject({ verdict: 'granted' })
  })

  it('is not approved with votes for another patch', async () => {
    const [one, other] = [await proposed(), await proposed()]
    must(await one.approve('eva'), 200, 202)
    expect(must(await other.approve('ada'), 200, 202).body).toMatchObject({
      status: 'awaiting_approval',
      votes: [{ actor: { name: 'ada' } }],
    })
  })

  it('is not approved by a right that its proposer granted, whatever the gates require', async () => {
    lose('eva', { given: { roles: { by: p.people.olga.id, at: new Date() } } })
    p.deps.trust.principals.drop('all')
    const { approve } = await proposed({ four_eyes: false, quorum: 1 })
    expect(await approve('eva')).toMatchObject({ status: 403, body: { code: 'tainted_right' } })
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
  })
})

describe('an unused approval', () => {
  const announce = (person: Person, type: string) => {
    const nc = p.deps.nats.get()
    const payload = type === 'status_changed' ? { user_id: person.id } : { user_ids: [person.id] }
    nc?.publish(prefixed(p.prefix, `auth.user.${type}.v1`), JSON.stringify(payload))
  }

  it.each(LOSSES)('asks again once it learns that its voter %s', async (_what, how, why) => {
    const { operation_id, approve } = await waiting()
    expect(must(await approve('eva'), 200, 202).body.status).toBe('approved')
    lose('eva', how)
    announce(p.people.eva, why === 'voter_disabled' ? 'status_changed' : 'roles_changed')
    await until(async () => (await gateOf(operation_id))?.status === 'waiting')
    expect(await gateOf(operation_id)).toEqual({ status: 'waiting', round: 2, consumed: false, open: 1 })
    expect(await told(operation_id, 'gate.reopened')).toMatchObject([
      { actor: { kind: 'system' }, data: { round: 2, why, voters: [{ name: 'eva', why }] } },
    ])
    expect((await records(operation_id)).at(-1)).toMatchObject({
      kind: 'gate_decision',
      statement: expect.stringMatching(/^Gate go asks again in round 2\. The approval of eva no longer counts: /),
    })
    const engine = await p.query(
      `select payload from operations.operation_commands where operation_id = $1 and kind = 'gate_decided' order by seq desc limit 1`,
      [operation_id],
    )
    expect(engine).toMatchObject([{ payload: { gate_id: 'go', round: 2, status: 'waiting' } }])
  })

  it('holds with the remaining votes if these are enough', async () => {
    const { operation_id, approve } = await waiting(alone({ quorum: 2 }))
    must(await approve('eva'), 200, 202)
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
    // A third vote is not taken: the gate is decided. A quorum of one would have let two votes stand for each other.
    await p.query(`update operations.gates set policy = jsonb_set(policy, '{quorum}', '1') where operation_id = $1`, [
      operation_id,
    ])
    lose('eva', DISABLED)
    announce(p.people.eva, 'status_changed')
    await until(async () => (await told(operation_id, 'gate.vote_voided')).length > 0)
    expect(await gateOf(operation_id)).toMatchObject({ status: 'approved', round: 1 })
  })

  it('keeps the other votes', async () => {
    const { operation_id, approve } = await waiting(alone({ quorum: 2 }))
    must(await approve('eva'), 200, 202)
    must(await approve('ada'), 200, 202)
    lose('eva', DISABLED)
    announce(p.people.eva, 'status_changed')
    await until(async () => (await gateOf(operation_id))?.round === 2)
    expect(await votesOf(operation_id)).toContainEqual({ name: 'ada', round: 2, voided: false })
    expect((await records(operation_id)).at(-1).subject.kept).toEqual([p.people.ada.id])
    expect(must(await approve('both'), 200, 202).body).toMatchObject({ status: 'approved', round: 2 })
  })
})

describe('a delegation', () => {
  type Name = 'both' | 'ivo' | 'eva' | 'pia' | 'vic'
  const delegated = async (approvals = {}) => {
    const o = await waiting(alone(approvals))
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const delegate = (who: Name, to: Name) =>
      p
        .as(who)
        .post(`/v1/operations/${o.operation_id}/interventions`, {
          type: 'delegate_gate',
          payload: { gate_id: 'go', to_user: p.people[to].id, until },
          reason: 'away',
        })
    must(await delegate('both', 'ivo'), 201)
    const vote = async (who: Name) => p.as(who).post(`${o.path}/approve`, await p.seen(o.operation_id, 'go', who))
    const view = async (who: Name) => must(await p.as(who).get(o.path), 200).body
    return { ...o, delegate, vote, view }
  }
  it('counts and names those whose right has a place, whatever places matter for the reader', async () => {
    const o = await delegated()
    await p.query(`update operations.operations set resource_ids = '{near-01}' where operation_id = $1`, [
      o.operation_id,
    ])
    await p.query(`insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state, change_seq)
      values ('near-01', 'topology.region', 1, 'near', 1, 'active', '{}', '{}', '{}', 1)`)
    lose('both', { scope: { regionId: 'near-01' } })
    const { eligible } = await o.view('vic')
    expect(eligible.map(({ name }: { name: string }) => name)).toContain('both')
    expect(await o.view('ivo')).toMatchObject({ eligible_me: true })
    const { items } = must(await p.as('ivo').get(`/v1/operations/${o.operation_id}/gates`), 200).body
    expect(items).toMatchObject([{ eligible_me: true }])
    must(await o.vote('ivo'), 200, 202)
  })

  /** The refusal, which the page gives as its reason too. */
  const refusedAs = async ({ vote, view }: Awaited<ReturnType<typeof delegated>>, why: RegExp) => {
    const refused = await vote('ivo')
    expect(refused).toMatchObject({ status: 403, body: { code: 'not_eligible', detail: expect.stringMatching(why) } })
    const { eligible_me, why_not_me, allowed_actions, eligible } = await view('ivo')
    expect({ eligible_me, why_not_me }).toEqual({ eligible_me: false, why_not_me: refused.body.detail })
    expect(allowed_actions[0]).toMatchObject({ action: 'approve', allowed: false, reason: refused.body.detail })
    expect(eligible.map(({ name }: { name: string }) => name)).not.toContain('ivo')
  }

  it('is one vote, whether one of the two gives it or both do', async () => {
    const o = await delegated({ quorum: 2, groups: [{ group: 'netops', min: 2 }] })
    expect(must(await o.vote('ivo'), 200, 202).body).toMatchObject({ status: 'waiting', missing: [{ count: 1 }] })
    expect(must(await o.vote('both'), 200, 202).body).toMatchObject({ status: 'waiting', missing: [{ count: 1 }] })
    expect(must(await o.vote('eva'), 200, 202).body).toMatchObject({ status: 'approved' })
    const other = await delegated({ quorum: 2, groups: [{ group: 'netops', min: 2 }] })
    must(await other.vote('both'), 200, 202)
    await refusedAs(other, /has been given already: the two of you count as one/)
  })

  it.each(LOSSES)(
    'ends when the person who delegated %s: at the vote, and before the next start',
    async (_what, how) => {
      const o = await delegated({ quorum: 2, groups: [{ group: 'netops', min: 2 }] })
      lose('both', how)
      await refusedAs(o, /both delegated this gate to you, but can no longer decide it/)
      restore()
      must(await o.vote('ivo'), 200, 202)
      lose('both', how)
      expect(must(await o.vote('eva'), 200, 202).body).toMatchObject({
        status: 'waiting',
        votes: [{ actor: { name: 'eva' } }],
      })
      restore()
      const one = await delegated()
      expect(must(await one.vote('ivo'), 200, 202).body.status).toBe('approved')
      lose('both', how)
      p.deps.trust.principals.drop([p.people.both.id])
      await rightsChanged(p.deps, [p.people.both.id])
      expect(await gateOf(one.operation_id)).toMatchObject({ status: 'waiting', round: 2 })
      expect((await votesOf(one.operation_id))[0]).toMatchObject({ name: 'ivo', voided: true })
    },
  )

  it('is one rejection with that of the person who delegated, though the vote was taken back', async () => {
    const o = await delegated({ quorum: 2, reject_rule: 'majority' })
    must(await o.vote('ivo'), 200, 202)
    const reject = (who: Name, round: number) => p.as(who).post(`${o.path}/reject`, { round, comment: 'no' })
    expect(must(await reject('both', 1), 200, 202).body).toMatchObject({ status: 'waiting', round: 1 })
    must(await o.vote('eva'), 200, 202)
    expect(must(await o.approve('ada'), 200, 202).body).toMatchObject({ status: 'approved' })
    expect(must(await reject('ivo', 1), 200, 202).body).toMatchObject({ status: 'waiting', round: 2 })
    expect(must(await reject('eva', 2), 200, 202).body).toMatchObject({ status: 'rejected' })
  })

  it('does not replace that of another person while it is in force', async () => {
    const o = await delegated({ quorum: 2 })
    must(await o.vote('ivo'), 200, 202)
    const refused = await o.delegate('eva', 'ivo')
    expect(problem(refused)).toBe('422 validation_error/parameters_invalid')
    expect(refused.body.violations).toMatchObject([{ pointer: '/payload/to_user' }])
    must(await o.delegate('both', 'ivo'), 201)
    expect(must(await o.vote('eva'), 200, 202).body).toMatchObject({ status: 'approved' })
  })

  it('ends when the person who delegated takes part in the operation', async () => {
    const o = await delegated()
    await p.query(`update operations.operations set involved = involved || $2::text where operation_id = $1`, [
      o.operation_id,
      p.people.both.id,
    ])
    await refusedAs(o, /can no longer decide it/)
  })

  it('cannot be passed on, and leaves a right of its own alone', async () => {
    const o = await delegated({ quorum: 2, groups: [{ group: 'netops', min: 2 }] })
    lose('ivo', { roles: ['approver', 'operator'] })
    expect(await o.delegate('ivo', 'pia')).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    restore()
    lose('ivo', { groups: ['netops'] })
    must(await o.vote('both'), 200, 202)
    expect(must(await o.vote('ivo'), 200, 202).body).toMatchObject({ status: 'approved' })
  })

  it('is refused to a person who may decide already, and takes no vote away', async () => {
    const wrong = { status: 422, body: { code: 'parameters_invalid', violations: [{ pointer: '/payload/to_user' }] } }
    const o = await delegated({ quorum: 2 })
    expect(await o.delegate('both', 'eva')).toMatchObject(wrong)
    expect(await o.delegate('both', 'both')).toMatchObject(wrong)
    // A gate that asks no group: everyone who may decide has a vote.
    await p.query(
      `update operations.gates set policy = jsonb_set(policy, '{groups}', '[]') where operation_id = $1 and gate_id = 'go'`,
      [o.operation_id],
    )
    expect(await o.delegate('both', 'ivo')).toMatchObject(wrong)
    expect(must(await o.vote('both'), 200, 202).body.status).toBe('waiting')
    expect(must(await o.vote('ivo'), 200, 202).body.status).toBe('approved')
  })
})

describe('a right granted by a participant of the operation', () => {
  const DAY_MS = 86_400_000
  const since = (days: number) => new Date(Date.now() - days * DAY_MS)
  const GIFTS: [string, Person['given']][] = [
    ['the role', { roles: { by: 'olga', at: since(1) } }],
    ['the group', { groups: { by: 'pia', at: since(1) } }],
    ['the credential', { reset: { by: 'olga', at: since(-0.001) } }],
  ]
  const by = (given: Person['given'] = {}): Partial<Person> => ({
    given: Object.fromEntries(
      Object.entries(given).map(([what, from]) => [what, { ...from, by: p.people[from.by as 'olga'].id }]),
    ),
  })

  it.each(GIFTS)('decides nothing, whether it is %s', async (_what, given) => {
    lose('eva', by(given))
    p.deps.trust.principals.drop('all')
    const { path, approve } = await waiting()
    expect(await approve('eva')).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'tainted_right' },
    })
    const seen = must(await p.as('eva').get(path), 200).body
    expect(seen).toMatchObject({ eligible_me: false, why_not_me: expect.stringContaining('takes part') })
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
  })

  it.each(GIFTS)('voids the vote given before: %s', async (_what, given) => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    lose('eva', by(given))
    must(await p.service('worker').post('/internal/v1/gate-standing', { operation_id, gate_ids: ['go'] }), 204)
    expect(await gateOf(operation_id)).toMatchObject({ status: 'waiting', round: 2 })
    expect(await told(operation_id, 'gate.reopened')).toMatchObject([{ data: { why: 'voter_tainted' } }])
  })

  it('counts if it is older, comes from others, or four eyes are not required', async () => {
    for (const [given, policy] of [
      [{ roles: { by: 'olga', at: since(8) }, groups: { by: 'pia', at: since(8) } }, {}],
      [{ roles: { by: 'ivo', at: since(1) }, groups: { by: 'ivo', at: since(1) } }, {}],
      [{ roles: { by: 'olga', at: since(1) } }, { four_eyes: false }],
    ] as const) {
      lose('eva', by(given))
      p.deps.trust.principals.drop('all')
      const { approve } = await waiting(alone(policy))
      expect(must(await approve('eva'), 200, 202).body.status).toBe('approved')
      restore()
    }
  })
})

describe('a right that a provider gave', () => {
  const provider = (days: number): NonNullable<Person['given']> => ({
    groups: { by: 'provider:corp', at: new Date(Date.now() - days * 86_400_000) },
  })
  const refusing = () => waiting(alone({ new_members: 'refuse', four_eyes: false }))

  it('does not decide where new members are refused, and elsewhere counts', async () => {
    lose('eva', { given: provider(1) })
    p.deps.trust.principals.drop('all')
    expect(must(await (await waiting()).approve('eva'), 200, 202).body.status).toBe('approved')
    const { path, approve } = await refusing()
    expect(await approve('eva')).toMatchObject({
      status: 403,
      body: { code: 'tainted_right', detail: expect.stringContaining('An identity provider gave you the right') },
    })
    expect(must(await p.as('eva').get(path), 200).body).toMatchObject({ eligible_me: false })
    expect(must(await approve('ada'), 200, 202).body.status).toBe('approved')
  })

  it('counts there if it is older than the plan could be known', async () => {
    lose('eva', { given: provider(8) })
    p.deps.trust.principals.drop('all')
    expect(must(await (await refusing()).approve('eva'), 200, 202).body.status).toBe('approved')
  })

  it('voids the vote given before it', async () => {
    const { operation_id, approve } = await refusing()
    must(await approve('eva'), 200, 202)
    lose('eva', { given: provider(1) })
    must(await p.service('worker').post('/internal/v1/gate-standing', { operation_id, gate_ids: ['go'] }), 204)
    expect(await gateOf(operation_id)).toMatchObject({ status: 'waiting', round: 2 })
    expect(await told(operation_id, 'gate.reopened')).toMatchObject([{ data: { why: 'voter_tainted' } }])
  })
})

describe('the claim of a node behind a gate', () => {
  const claim = (operation_id: string, away?: string) =>
    claimAttempt(
      p.deps.pool,
      { operation_id, node_id: 'behind', role: 'run', generation: 1, attempt: 1 },
      { standing_s: 5, away },
    )
  const prove = (operation_id: string) =>
    p.service('worker').post('/internal/v1/gate-standing', { operation_id, gate_ids: ['go'] })

  it('requires a check of its voters, and relies on it for five seconds', async () => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    expect(await claim(operation_id)).toEqual({ verdict: 'recheck', gate_ids: ['go'] })
    expect((await prove(operation_id)).status).toBe(204)
    expect(await claim(operation_id)).toMatchObject({ verdict: 'granted' })
  })

  it('has its voters checked while someone else locks the operation', async () => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    await p.deps.db.transaction(async (tx) => {
      await tx.execute(sql`select from operations.operation_control where operation_id = ${operation_id} for update`)
      must(await prove(operation_id), 204)
    })
    expect(await claim(operation_id)).toMatchObject({ verdict: 'granted' })
  })

  it('asks again if the check is older, or before the decision', async () => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    must(await prove(operation_id), 204)
    await p.query(`update operations.gates set standing_at = standing_at - interval '5 s' where operation_id = $1`, [
      operation_id,
    ])
    expect(await claim(operation_id)).toMatchObject({ verdict: 'recheck' })
    await p.query(
      `update operations.gates set standing_at = clock_timestamp(), decided_at = clock_timestamp() + interval '1 s' where operation_id = $1`,
      [operation_id],
    )
    expect(await claim(operation_id)).toMatchObject({ verdict: 'recheck' })
  })

  it.each(LOSSES)('is refused if its voter %s, even if the gate was used before', async (_what, how, why) => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    await p.query('update operations.gates set consumed_at = clock_timestamp() where operation_id = $1', [operation_id])
    lose('eva', how)
    must(await prove(operation_id), 204)
    expect(await gateOf(operation_id)).toEqual({ status: 'waiting', round: 2, consumed: false, open: 1 })
    expect(await claim(operation_id)).toMatchObject({ verdict: 'refused', reason: 'gate_open' })
    expect(await told(operation_id, 'gate.reopened')).toMatchObject([{ data: { why } }])
  })

  it('relies on a used approval if the policy keeps it', async () => {
    const { operation_id, approve } = await waiting(alone({}, { on_voter_loss: 'keep_after_start' }))
    must(await approve('eva'), 200, 202)
    expect(await claim(operation_id)).toMatchObject({ verdict: 'recheck' })
    await p.query('update operations.gates set consumed_at = clock_timestamp() where operation_id = $1', [operation_id])
    expect(await claim(operation_id)).toMatchObject({ verdict: 'granted' })
  })

  it('is refused if the person who bypassed the gate no longer may', async () => {
    const { operation_id, path } = await waiting()
    const seen = await p.seen(operation_id, 'go', 'both')
    const glass = { ...seen, break_glass: { reason: 'urgent' } }
    expect(must(await p.as('both').post(`${path}/approve`, glass), 200, 202).body.status).toBe('bypassed')
    lose('both', { roles: ['approver'] })
    must(await prove(operation_id), 204)
    expect(await claim(operation_id)).toMatchObject({ reason: 'gate_open', gates: [{ status: 'waiting', round: 2 }] })
  })

  it('waits while identity is down', async () => {
    const { operation_id, approve } = await waiting()
    must(await approve('eva'), 200, 202)
    p.identity.away = true
    expect((await prove(operation_id)).status).toBe(503)
    expect(await claim(operation_id, 'identity')).toMatchObject({
      verdict: 'refused',
      reason: 'unproved',
      closure: { kind: 'identity', id: 'identity' },
    })
    expect(await gateOf(operation_id)).toMatchObject({ status: 'approved', round: 1 })
  })

  it('is proved only by authorized services', async () => {
    const { operation_id } = await waiting()
    const asked = { operation_id, gate_ids: ['go'] }
    expect((await p.service('catalog').post('/internal/v1/gate-standing', asked)).status).toBe(403)
    expect((await p.service('worker').post('/internal/v1/gate-standing', { ...asked, gate_ids: [] })).status).toBe(400)
  })
})

describe('a running operation', () => {
  let worker: Awaited<ReturnType<typeof startWorker>>
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-voters-'))
    const file = join(folder, 'policy.yaml')
    writeFileSync(
      file,
      JSON.stringify({ format: 'signalbox/executor-policy@1', pools: { default: { destinations: [], secrets: [] } } }),
    )
    worker = await startWorker(p, file)
  }, 90_000)
  afterAll(async () => {
    await worker.stop()
    rmSync(folder, { recursive: true })
    await worker.end()
  })

  const look = async (operation_id: string) => must(await p.as('vic').get(`/v1/operations/${operation_id}`), 200).body
  const reaches = (operation_id: string, wanted: string) =>
    until(async () => (await look(operation_id)).status === wanted, { what: wanted })
  const gateIs = (operation_id: string, status: string, round: number) =>
    until(
      async () => {
        const gate = await gateOf(operation_id)
        return gate?.status === status && gate.round === round
      },
      { what: `gate ${status} in round ${round}` },
    )
  const attempts = (operation_id: string) =>
    p.query('select node_id from operations.node_attempts where operation_id = $1 order by started_at', [operation_id])
  const reason = 'a test'
  /** Paused, with a gate that eva has approved. */
  const approvedWhilePaused = async (graph = alone()) => {
    const { operation_id } = await p.startOperation(graph)
    await gateIs(operation_id, 'waiting', 1)
    const path = `/v1/operations/${operation_id}`
    must(await p.as('olga').post(`${path}/pause`, { reason }), 200, 202)
    must(await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go')), 200, 202)
    const resume = async () => must(await p.as('olga').post(`${path}/resume`, { reason }), 200, 202)
    const approve = async (who: 'ada' | 'both') =>
      must(await p.as(who).post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go', who)), 200, 202)
    return { operation_id, path, resume, approve }
  }

  it('starts no node on the approval of a person disabled since, even without an event', async () => {
    const { operation_id, resume, approve } = await approvedWhilePaused()
    lose('eva', DISABLED)
    await resume()
    await gateIs(operation_id, 'waiting', 2)
    await reaches(operation_id, 'blocked')
    expect(await attempts(operation_id)).toEqual([])
    expect((await look(operation_id)).blocked_on).toMatchObject([{ kind: 'gate', id: 'go' }])
    await approve('ada')
    await reaches(operation_id, 'succeeded')
    expect(await attempts(operation_id)).toEqual([{ node_id: 'behind' }])
  }, 90_000)

  /** Two nodes behind one gate; the second begins when the proof of the first is too old. */
  const twice = () => {
    const { gates } = alone()
    return {
      nodes: [
        { node_id: 'a', executor: 'noop', with: { delay_ms: 6500 } },
        { node_id: 'b', executor: 'noop', with: {}, depends_on: ['a'] },
      ],
      gates: gates.map((gate) => ({ ...gate, guards: ['a', 'b'] })),
    }
  }
  const firstBegun = (operation_id: string) =>
    until(async () => (await attempts(operation_id)).length === 1, { timeout_ms: 30_000 })

  it('holds before the next node behind a used gate; started nodes continue', async () => {
    const { operation_id, resume, approve } = await approvedWhilePaused(twice())
    await resume()
    await firstBegun(operation_id)
    lose('eva', { groups: [] })
    await gateIs(operation_id, 'waiting', 2)
    await reaches(operation_id, 'blocked')
    expect((await look(operation_id)).progress).toMatchObject({ done: 1, total: 2 })
    await approve('ada')
    await reaches(operation_id, 'succeeded')
  }, 90_000)

  it('keeps its nodes ready while identity is down, says so, can be paused, and continues afterwards', async () => {
    const { operation_id, path, resume } = await approvedWhilePaused(twice())
    await resume()
    await firstBegun(operation_id)
    p.identity.away = true
    const blockedOn = async () => {
      const [row] = await p.query<{ blocked_on: { kind: string }[] }>(
        'select blocked_on from operations.operations where operation_id = $1',
        [operation_id],
      )
      return row?.blocked_on ?? []
    }
    // Until then the row may still report the earlier pause.
    await until(async () => (await blockedOn()).some(({ kind }) => kind === 'identity'), { timeout_ms: 30_000 })
    expect(await blockedOn()).toMatchObject([
      { kind: 'identity', id: 'identity', message: expect.stringContaining('identity does not answer') },
    ])
    expect(await attempts(operation_id)).toEqual([{ node_id: 'a' }])
    must(await p.as('olga').post(`${path}/pause`, { reason }), 200, 202)
    p.identity.away = false
    await reaches(operation_id, 'paused')
    await resume()
    await reaches(operation_id, 'succeeded')
  }, 90_000)
})
