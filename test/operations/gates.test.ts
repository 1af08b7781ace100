import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { digest } from '../../apps/shared/data/digest.ts'
import { claimAttempt } from '../../db/operations/nodes/claim.ts'
import { until } from '../support/until.ts'
import { gated, must, type Platform, person, startPlatform } from './support/platform.ts'

/** Holds both rights of a bypass, but is in no group. */
const out = person('out', ['operator', 'approver'])
let p: Platform
beforeAll(async () => {
  p = await startPlatform({ instances: 2 })
  Object.assign(p.people, { out })
})
afterAll(() => p.stop())

const waitingGate = async (policy?: Record<string, unknown>) => {
  const { operation_id } = await p.startOperation(gated(policy))
  await p.openGate(operation_id, 'go')
  return { operation_id, path: `/v1/operations/${operation_id}/gates/go`, seen: await p.seen(operation_id, 'go') }
}
const commandsOf = (operation_id: string) =>
  p.query<{ kind: string; status: string }>(
    `select kind, status from operations.operation_commands where operation_id = $1 and kind = 'gate_decided' order by seq`,
    [operation_id],
  )

describe('a gate', () => {
  it('shows the subject of the decision, and its digest covers exactly that', async () => {
    const { path } = await waitingGate()
    const { body, headers } = await p.as('eva').get(path)
    expect(body.digest).toBe(digest(body.subject))
    expect(body).toMatchObject({
      status: 'waiting',
      round: 1,
      eligible_me: true,
      why_not_me: null,
      missing: [{ group: 'netops', count: 1 }],
    })
    expect(body.eligible.map(({ name }: { name: string }) => name).sort()).toEqual(['ada', 'both', 'eva'])
    expect(body.allowed_actions.find(({ action }: { action: string }) => action === 'approve').allowed).toBe(true)
    expect(headers.get('etag')).toMatch(/^"\d+-\d+"$/)
  })

  it('names the wrong group of a vote that would count without it', async () => {
    const { path, seen } = await waitingGate()
    const voted = await p.as('eva').post(`${path}/approve`, { ...seen, as_group: 'dbas' })
    expect(voted).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    expect(voted.body.detail).toBe('"dbas" is not a group of yours that this gate asks for: leave out as_group.')
    must(await p.as('eva').post(`${path}/approve`, { ...seen, as_group: 'netops' }), 200)
  })

  it('that was rejected and holds its node is opened again by a retry of that node', async () => {
    const { operation_id, path, seen } = await waitingGate({ on_reject: 'hold' })
    await p.query(`update operations.nodes set state = 'gated' where operation_id = $1 and node_id = 'behind'`, [
      operation_id,
    ])
    const node = `/v1/operations/${operation_id}/nodes/behind`
    const retry = () => p.as('olga').post(`${node}/retry`, { reason: 'corrected', scope: 'node' })
    const mayRetry = async () =>
      (await p.as('olga').get(node)).body.allowed_actions.find(({ action }: { action: string }) => action === 'retry')
    expect(await mayRetry()).toMatchObject({ allowed: false, reason_code: 'node_not_retryable' })
    expect(await retry()).toMatchObject({ status: 409, body: { code: 'node_not_retryable' } })
    must(await p.as('eva').post(`${path}/reject`, { round: seen.round, comment: 'no' }), 200)
    expect(await mayRetry()).toMatchObject({ allowed: true })
    expect(must(await retry(), 200, 202).body).toMatchObject({ generation: 2, rearmed_gates: ['go'] })
    expect((await p.as('eva').get(path)).body).toMatchObject({ status: 'armed', round: 2 })
  })

  it('that was rejected in a pause, which ends the operation, is not opened again', async () => {
    const { operation_id, path, seen } = await waitingGate({ on_reject: 'cancel_operation' })
    const whole = `/v1/operations/${operation_id}`
    await p.query(
      `update operations.nodes set state = case node_id when 'before' then 'succeeded' else 'gated' end where operation_id = $1`,
      [operation_id],
    )
    must(await p.as('olga').post(`${whole}/pause`, { reason: 'wait' }), 200, 202)
    must(await p.as('eva').post(`${path}/reject`, { round: seen.round, comment: 'no' }), 200, 202)
    for (const node_id of ['behind', 'before'])
      for (const dry_run of [true, false])
        expect(await p.as('olga').post(`${whole}/nodes/${node_id}/retry`, { reason: 'again', dry_run })).toMatchObject({
          status: 409,
          body: { code: 'node_not_retryable', detail: expect.stringContaining('"go"') },
        })
    const { body } = await p.as('olga').get(`${whole}/nodes/behind`)
    expect(body.allowed_actions.find(({ action }: { action: string }) => action === 'retry').allowed).toBe(false)
    expect((await p.as('eva').get(path)).body).toMatchObject({ status: 'rejected', round: 1 })
  })

  it('is approved by a member of its group on the current digest', async () => {
    const { path, seen, operation_id } = await waitingGate()
    const { status, body } = await p.as('eva').post(`${path}/approve`, { ...seen, comment: 'fine' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'approved', operation_status: 'blocked', decided: { by: { name: 'eva' } } })
    expect(body.command).toMatchObject({ kind: 'gate_decided', status: 'accepted' })
    expect(body.votes).toMatchObject([{ decision: 'approve', group: 'netops', round: 1, comment: 'fine' }])
    const { body: timeline } = await p.as('vic').get(`/v1/operations/${operation_id}/timeline`)
    expect(timeline.events.map(({ type }: { type: string }) => type)).toEqual(
      expect.arrayContaining(['gate.voted', 'gate.approved']),
    )
    const { body: evidence } = await p.as('vic').get(`/v1/operations/${operation_id}/evidence`)
    expect(evidence.records.map(({ kind }: { kind: string }) => kind)).toEqual([
      'plan',
      'start',
      'vote',
      'gate_decision',
    ])
    expect(evidence.records.at(-1).subject_digest).toBe(seen.reviewed_digest)
  })

  it.each([
    [undefined, 409, 'expired'],
    ['hold', 200, undefined],
  ])(
    'takes no approval after its time, even if no worker is there to mark it (on_timeout: %s)',
    async (on_timeout, status, code) => {
      const { path, seen, operation_id } = await waitingGate({ ...(on_timeout && { on_timeout }) })
      await p.query(
        `update operations.gates set deadline_at = clock_timestamp() - interval '1 s' where operation_id = $1`,
        [operation_id],
      )
      expect(await p.as('eva').post(`${path}/approve`, seen)).toMatchObject({ status, body: code ? { code } : {} })
      if (code) must(await p.as('eva').post(`${path}/reject`, { round: 1, comment: 'no' }), 200)
    },
  )

  it('has one winner among 100 clients over two processes; the same key gets the same bytes', async () => {
    const { path, seen, operation_id } = await waitingGate()
    // No person both approves and rejects, because an approver could withdraw that way.
    const clients = Array.from({ length: 100 }, (_, n) => ({
      key: randomUUID(),
      instance: n % 2,
      who: (['eva', 'both', 'ada'] as const)[n % 3] ?? 'eva',
      verdict: n % 3 === 2 ? ('reject' as const) : ('approve' as const),
    }))
    const decide = async ({ key, instance, who, verdict }: (typeof clients)[number]) => {
      const body = verdict === 'approve' ? seen : { round: seen.round, comment: 'no' }
      for (;;) {
        const reply = await p.as(who).post(`${path}/${verdict}`, body, { key, instance })
        // Overload and a duplicate that still runs are reported; the same key may be sent again.
        if (reply.status !== 503 && reply.body?.code !== 'in_progress') return reply
      }
    }
    const replies = await Promise.all(clients.map(decide))
    const winners = replies.filter(({ status }) => status === 200 || status === 202)
    expect(winners).toHaveLength(1)
    const losers = replies.filter(({ status }) => status !== 200 && status !== 202)
    expect(new Set(losers.map(({ status, body }) => `${status} ${body.category}/${body.code}`))).toEqual(
      new Set(['409 gate_not_waiting/already_decided']),
    )
    expect(await commandsOf(operation_id)).toHaveLength(1)

    const won = clients[replies.findIndex(({ status }) => status === 200 || status === 202)]
    const again = await Promise.all(
      [0, 1].map((instance) => decide({ ...(won as (typeof clients)[number]), instance })),
    )
    for (const reply of again) {
      expect(reply.text).toBe(winners[0]?.text)
      expect(reply.headers.get('idempotency-replayed')).toBe('true')
    }
    const events = await p.query(
      `select 1 from operations.operation_timeline_view where operation_id = $1 and type in ('gate.approved', 'gate.rejected')`,
      [operation_id],
    )
    expect(events).toHaveLength(1)
  }, 60_000)

  it('lets an expiry win that came a moment earlier', async () => {
    const { path, seen, operation_id } = await waitingGate()
    const { pool } = p.deps
    const engine = await pool.connect()
    await engine.query('begin')
    await engine.query(
      `update operations.gates set status = 'expired' where operation_id = $1 and gate_id = 'go' and status = 'waiting' and round = 1`,
      [operation_id],
    )
    const approving = p.as('eva').post(`${path}/approve`, seen)
    // The approval waits for the row that the expiry holds.
    await until(async () => {
      const rows = await p.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'select "operations"."gates"%'`,
      )
      return rows.length > 0
    })
    await engine.query('commit')
    engine.release()
    expect(await approving).toMatchObject({ status: 409, body: { category: 'gate_not_waiting', code: 'expired' } })
    expect(await commandsOf(operation_id)).toEqual([])
  })

  it('refuses an outdated digest, a past round, and a second decision', async () => {
    const { path, seen } = await waitingGate()
    const stale = { ...seen, reviewed_digest: `sha256:${'0'.repeat(64)}` }
    expect(await p.as('eva').post(`${path}/approve`, stale)).toMatchObject({
      status: 412,
      body: { category: 'version_conflict', code: 'digest_moved', digest: seen.reviewed_digest },
    })
    expect(await p.as('eva').post(`${path}/approve`, { ...seen, round: 7 })).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'round_superseded', round: 1 },
    })
    expect((await p.as('eva').post(`${path}/approve`, seen)).status).toBe(200)
    expect(await p.as('ada').post(`${path}/approve`, seen)).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'already_decided' },
    })
  })

  it('cannot be decided before it is reached', async () => {
    const { operation_id } = await p.startOperation(gated())
    const seen = await p.seen(operation_id, 'go')
    expect(await p.as('eva').post(`/v1/operations/${operation_id}/gates/go/approve`, seen)).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'not_reached' },
    })
  })

  it('needs someone other than the requester and the starter', async () => {
    const { operation_id } = await p.startOperation(gated(), { by: 'both' })
    await p.openGate(operation_id, 'go')
    const seen = await p.seen(operation_id, 'go')
    const path = `/v1/operations/${operation_id}/gates/go`
    const { metrics } = p.deps.telemetry
    const refusals = async () =>
      Number(/^signalbox_policy_denied_total\{.*self_approval.*\} (\d+)/m.exec(await metrics.metrics())?.[1] ?? 0)
    const before = await refusals()
    expect(await p.as('both').post(`${path}/approve`, seen)).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'self_approval', policy_ids: ['self_approval'] },
    })
    expect((await refusals()) - before).toBe(1)
    expect(await metrics.metrics()).toMatch(/^signalbox_policy_decision_seconds_count\S* [1-9]/m)
    const { body } = await p.as('both').get(path)
    expect(body).toMatchObject({ eligible_me: false, why_not_me: expect.stringContaining('somebody else') })
    // Stopping is easy: the same person may reject.
    expect(await p.as('both').post(`${path}/reject`, { round: 1, comment: 'stop' })).toMatchObject({
      status: 200,
      body: { status: 'rejected' },
    })
    const [denied] = await p.query<{ actor: string; outcome: string }>(
      `select actor, outcome from operations.audit where outcome = 'denied' and object = $1`,
      [`operation:${operation_id}`],
    )
    expect(denied).toEqual({ actor: `user:${p.people.both.id}`, outcome: 'denied' })
  })

  it('counts only votes of its groups, and requires a fresh password', async () => {
    const { path, seen } = await waitingGate()
    expect(await p.as('ivo').post(`${path}/approve`, seen)).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'not_eligible' },
    })
    expect(await p.as({ ...p.people.eva, auth_age_s: 1000 }).post(`${path}/approve`, seen)).toMatchObject({
      status: 403,
      body: {
        category: 'policy_denied',
        code: 'reauth_required',
        hint: expect.stringMatching(/passkey.*\/v1\/token\/reauth.*\/v1\/sso/),
      },
    })
    expect(await p.as('olga').post(`${path}/approve`, seen)).toMatchObject({
      status: 403,
      body: { category: 'policy_denied', code: 'permission_missing' },
    })
    expect(await p.as('far').post(`${path}/approve`, seen)).toMatchObject({
      status: 404,
      body: { category: 'not_found' },
    })
  })

  it('waits for its quorum; one person has one vote, and the newest counts', async () => {
    const { path, seen, operation_id } = await waitingGate({
      approvals: { quorum: 2, groups: [{ group: 'netops', min: 2 }] },
    })
    const one = await p.as('eva').post(`${path}/approve`, seen)
    expect(one).toMatchObject({ status: 200, body: { status: 'waiting', command: { status: 'applied' } } })
    expect(one.body.missing).toEqual([{ group: 'netops', count: 1 }])
    expect(await p.as('eva').post(`${path}/approve`, seen)).toMatchObject({ status: 200, body: { status: 'waiting' } })
    expect((await p.query('select 1 from operations.votes where operation_id = $1', [operation_id])).length).toBe(1)
    expect(await p.as('ada').post(`${path}/approve`, seen)).toMatchObject({ status: 200, body: { status: 'approved' } })
  })

  it('can be withdrawn by its approver until a node behind it has started', async () => {
    const { path, seen, operation_id } = await waitingGate()
    await p.as('eva').post(`${path}/approve`, seen)
    expect(await p.as('ada').post(`${path}/reject`, { round: 1, comment: 'no' })).toMatchObject({
      status: 409,
      body: { code: 'already_decided' },
    })
    expect(await p.as('eva').post(`${path}/reject`, { round: 1, comment: 'I was wrong' })).toMatchObject({
      status: 200,
      body: { status: 'rejected', round: 2 },
    })

    const other = await waitingGate()
    await p.as('eva').post(`${other.path}/approve`, other.seen)
    await p.query(`update operations.gates set consumed_at = clock_timestamp() where operation_id = $1`, [
      other.operation_id,
    ])
    expect(await p.as('eva').post(`${other.path}/reject`, { round: 1, comment: 'late' })).toMatchObject({
      status: 409,
      body: { code: 'already_consumed' },
    })
    expect(operation_id).not.toBe(other.operation_id)
  })

  it('is rejected by an approval taken back if the rejections are then enough, by majority too', async () => {
    const { path, seen } = await waitingGate({
      approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], reject_rule: 'majority' },
    })
    await p.as('eva').post(`${path}/approve`, seen)
    const taken = await p.as('eva').post(`${path}/reject`, { round: 1, comment: 'I was wrong' })
    expect(taken).toMatchObject({ status: 200, body: { status: 'rejected', round: 2 } })
  })

  it('waits no longer for a person whose rejection is not enough by majority', async () => {
    const { path, operation_id } = await waitingGate({
      approvals: { quorum: 2, groups: [{ group: 'netops', min: 1 }], reject_rule: 'majority' },
    })
    const mine = async () => {
      const { items } = must(await p.as('eva').get('/v1/gates?for=me&page_size=500'), 200).body
      return items.some((gate: { operation_id: string }) => gate.operation_id === operation_id)
    }
    expect(await mine()).toBe(true)
    const { body } = await p.as('eva').post(`${path}/reject`, { round: 1, comment: 'not today' })
    expect(body.status).toBe('waiting')
    expect(await mine()).toBe(false)
  })

  it('can be bypassed only by holders of both permissions, freshly signed in', async () => {
    const { path, seen, operation_id } = await waitingGate()
    const broken = { ...seen, break_glass: { reason: 'the site is down' } }
    expect(await p.as('eva').post(`${path}/approve`, broken)).toMatchObject({
      status: 403,
      body: { code: 'break_glass_not_allowed' },
    })
    expect(await p.as({ ...p.people.both, auth_age_s: 400 }).post(`${path}/approve`, broken)).toMatchObject({
      status: 403,
      body: { code: 'reauth_required' },
    })
    expect(await p.as('both').post(`${path}/approve`, broken)).toMatchObject({
      status: 200,
      body: { status: 'bypassed' },
    })
    const { body } = await p.as('vic').get(`/v1/operations/${operation_id}`)
    expect(body.exceptions).toMatchObject([{ kind: 'gate_bypassed', gate_id: 'go' }])
  })

  it('can be bypassed by a person of none of its groups, but not by a right that a participant gave', async () => {
    const { path, seen } = await waitingGate({
      approvals: { groups: [{ group: 'netops', min: 1 }], comment_on_approve: true },
    })
    const broken = { ...seen, break_glass: { reason: 'the site is down' } }
    const mayBreak = async () => {
      const { allowed_actions } = must(await p.as(out).get(path), 200).body
      return allowed_actions.find(({ action }: { action: string }) => action === 'break_glass')
    }
    out.given = { roles: { by: p.people.olga.id, at: new Date() } }
    p.deps.trust.principals.drop('all')
    expect(await mayBreak()).toMatchObject({ allowed: false, reason_code: 'tainted_right' })
    expect(await p.as(out).post(`${path}/approve`, broken)).toMatchObject({
      status: 403,
      body: { code: 'tainted_right' },
    })
    delete out.given
    p.deps.trust.principals.drop('all')
    expect(await mayBreak()).toMatchObject({ allowed: true })
    expect(await p.as(out).post(`${path}/approve`, broken)).toMatchObject({ status: 200, body: { status: 'bypassed' } })
  })

  it('requires a comment if its policy does', async () => {
    const { path, seen } = await waitingGate({
      approvals: { groups: [{ group: 'netops', min: 1 }], comment_on_approve: true },
    })
    expect(await p.as('eva').post(`${path}/approve`, seen)).toMatchObject({
      status: 400,
      body: { category: 'validation_error', violations: [{ pointer: '/comment' }] },
    })
    // A bypass has a reason of its own.
    const broken = { ...seen, break_glass: { reason: 'the site is down' } }
    expect(await p.as('both').post(`${path}/approve`, broken)).toMatchObject({ status: 200 })
  })

  it('can be tried in a dry run without effect', async () => {
    const { path, seen, operation_id } = await waitingGate()
    const dry = await p.as('eva').post(`${path}/approve`, { ...seen, dry_run: true })
    expect(dry).toMatchObject({ status: 200, body: { dry_run: true, effect: { status: 'approved' } } })
    expect(await p.seen(operation_id, 'go')).toEqual(seen)
    expect(await commandsOf(operation_id)).toEqual([])
    expect((await p.query('select 1 from operations.votes where operation_id = $1', [operation_id])).length).toBe(0)
    expect(await p.as('ivo').post(`${path}/approve`, { ...seen, dry_run: true })).toMatchObject({
      status: 403,
      body: { code: 'not_eligible' },
    })
  })
})

describe('an approval withdrawn at the moment when a node behind the gate starts', () => {
  const graph = {
    nodes: [{ node_id: 'behind', executor: 'noop', with: {} }],
    gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['behind'] }],
  }
  /** Approved, with voters that were proved a moment ago. */
  const approved = async () => {
    const { operation_id } = await p.startOperation(graph)
    await p.openGate(operation_id, 'go')
    const path = `/v1/operations/${operation_id}/gates/go`
    const { round } = must(await p.as('eva').post(`${path}/approve`, await p.seen(operation_id, 'go')), 200, 202).body
    await p.query('update operations.gates set standing_at = clock_timestamp() where operation_id = $1', [operation_id])
    const takeBack = () => p.as('eva').post(`${path}/reject`, { round, comment: 'no' })
    const claim = () =>
      claimAttempt(p.deps.pool, { operation_id, node_id: 'behind', role: 'run', generation: 1, attempt: 1 })
    return { operation_id, takeBack, claim }
  }

  it('holds the node back, or is refused because the node has started; never neither, never both', async () => {
    const seen = new Set<string>()
    const ROUNDS = 16
    for (let round = 0; round <= ROUNDS; round++) {
      const { takeBack, claim } = await approved()
      const taking = round === 0 ? undefined : takeBack()
      // First the claim is alone, last it comes afterward; in between the withdrawal gets a head start of `round` ms.
      if (round === ROUNDS) await taking
      else await delay(round)
      const claimed = await claim()
      const taken = await (taking ?? takeBack())
      if (claimed.verdict === 'granted')
        expect(taken).toMatchObject({ status: 409, body: { category: 'gate_not_waiting', code: 'already_consumed' } })
      else {
        expect(claimed).toMatchObject({ verdict: 'refused', reason: 'gate_open' })
        expect(taken).toMatchObject({ body: { status: 'rejected', round: 2 } })
      }
      seen.add(claimed.verdict)
    }
    expect([...seen].sort()).toEqual(['granted', 'refused'])
  }, 60_000)

  it('is also refused if the row was used while it waited for it', async () => {
    const { operation_id, takeBack } = await approved()
    const engine = await p.deps.pool.connect()
    await engine.query('begin')
    await engine.query('update operations.gates set consumed_at = clock_timestamp() where operation_id = $1', [
      operation_id,
    ])
    const taking = takeBack()
    await until(async () => {
      const waiting = await p.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'select "operations"."gates"%'`,
      )
      return waiting.length > 0
    })
    await engine.query('commit')
    engine.release()
    expect(await taking).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'already_consumed' },
    })
    const [row] = await p.query('select status, round from operations.gates where operation_id = $1', [operation_id])
    expect(row).toEqual({ status: 'approved', round: 1 })
  })
})

describe('the inbox', () => {
  it('lists waiting gates, the earliest deadline first, and with for=me those that the caller may decide', async () => {
    const { operation_id } = await waitingGate()
    const mine = await p.as('eva').get('/v1/gates?for=me&page_size=500')
    const found = mine.body.items.find((item: { operation_id: string }) => item.operation_id === operation_id)
    expect(found).toMatchObject({
      gate_id: 'go',
      risk: expect.any(String),
      change_counts: { added: 0, changed: 0, removed: 0 },
    })
    expect(found.subject).toBeUndefined()
    const deadlines = mine.body.items.map((item: { deadline_at: string }) => item.deadline_at)
    expect(deadlines).toEqual([...deadlines].sort())
    const ofIvo = await p.as('ivo').get('/v1/gates?for=me&page_size=500')
    expect(ofIvo.body.items.filter((item: { operation_id: string }) => item.operation_id === operation_id)).toEqual([])
    const all = await p.as('ivo').get('/v1/gates?for=all&page_size=500')
    expect(all.body.items.some((item: { operation_id: string }) => item.operation_id === operation_id)).toBe(true)
  })

  it('continues page by page without a gap', async () => {
    for (let n = 0; n < 3; n++) await waitingGate()
    const ids: string[] = []
    let next: string | null = ''
    while (next !== null) {
      const { body } = await p.as('eva').get(`/v1/gates?page_size=2${next ? `&page_token=${next}` : ''}`)
      ids.push(...body.items.map((item: { operation_id: string }) => item.operation_id))
      next = body.next_page_token
    }
    const { body } = await p.as('eva').get('/v1/gates?page_size=500')
    expect(ids).toEqual(body.items.map((item: { operation_id: string }) => item.operation_id))
    expect(new Set(ids).size).toBe(ids.length)
  })
})
