import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { digest } from '../../apps/shared/data/digest.ts'
import { exportEvidence, verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import { repairTimeline } from '../../db/operations/projection/rebuild.ts'
import type { EvidenceRecord } from '../../db/operations/tables/evidence.ts'
import { type Answer, carryOut, createReporter, type Job, listenForWork, type Work } from '../support/agent/agent.ts'
import { freePort } from '../support/ports.ts'
import { readModelDifferences } from '../support/read-models.ts'
import { until } from '../support/until.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let stopAgents: () => Promise<void>
/** The work that the lab's agent was given, and what it does with it. */
const handed: Work[] = []
let answerBy: (work: Work) => Promise<void> = async () => {}
const jobs: Record<string, Job> = {
  greet: async ({ inputs }, { log }) => {
    log(`greets ${inputs.name}`)
    return { greeting: `hello ${inputs.name}` }
  },
  // Until it is told to stop.
  stall: (_work, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
}
const byAgent = (work: Work) => carryOut(work, jobs[work.job])
const PROGRAM = `#!/bin/sh
echo "reports $2 with $PASSWORD"
i=0; while [ $i -lt 3000 ]; do echo "line $i ........................................"; i=$((i+1)); done
printf '{"name": "%s"}' "$2" > "$SIGNALBOX_OUTPUTS"
printf 'kept, but not %s' "$PASSWORD" > "$SIGNALBOX_ARTIFACTS/report.txt"
`
const SCRIPT = new URL('../support/agent/agent.sh', import.meta.url).pathname

const startAgents = async () => {
  const lab = await listenForWork(async (work) => {
    handed.push(work)
    await answerBy(work)
  })
  const shell = await listenForWork(async (work) => {
    const script = spawn('bash', [SCRIPT], { stdio: ['pipe', 'ignore', 'inherit'] })
    script.stdin.end(JSON.stringify(work))
  })
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-agents-'))
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const secrets = ['secret://env/FLOW_*']
  const pool = (endpoint?: string) => ({
    destinations: [loopback],
    secrets,
    ...(endpoint && { mode: 'http', endpoint, max_in_flight: 50 }),
  })
  const gone = pool(`http://127.0.0.1:${await freePort()}/`)
  const policy = { default: pool(), lab: pool(lab.url), shell: pool(shell.url), gone }
  const file = join(folder, 'policy.yaml')
  const program = join(folder, 'program.sh')
  writeFileSync(program, PROGRAM, { mode: 0o755 })
  chmodSync(folder, 0o755)
  const programs = {
    report: {
      path: program,
      args: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' }, maxItems: 1 },
      env: ['PASSWORD'],
      ...(process.getuid?.() === 0 && { uid: 65534 }),
    },
  }
  writeFileSync(file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools: policy, programs }))
  stopAgents = async () => {
    await lab.close()
    await shell.close()
    rmSync(folder, { recursive: true })
  }
  return file
}

/** The whole path of a command: API, relay, Temporal, worker, and back into the rows. */
beforeAll(async () => {
  const policy_file = await startAgents()
  process.env.FLOW_PASSWORD = 'hunter2-hunter2'
  p = await startPlatform({
    instances: 2,
    env: { OPERATIONS__COMMANDS__WAIT_MS: '10000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
  // The first workflow of a worker takes seconds on a busy machine, longer than a command waits for its outcome.
  await reaches((await p.startOperation({ nodes: [noop('first', 0)] })).operation_id, 'succeeded')
}, 120_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  await stopAgents()
  await worker.end()
})

const reason = 'a test'
const noop = (node_id: string, delay_ms: number, ...depends_on: string[]) => ({
  node_id,
  executor: 'noop',
  with: { delay_ms },
  depends_on,
})
const status = async (operation_id: string) =>
  (await p.as('olga').get(`/v1/operations/${operation_id}`)).body.status as string
const reaches = (operation_id: string, ...wanted: string[]) =>
  until(async () => wanted.includes(await status(operation_id)), {
    timeout_ms: 60_000,
    what: `status ${wanted.join(' or ')}`,
  })
const attempts = async (operation_id: string) =>
  (await p.query('select node_id, attempt from operations.node_attempts where operation_id = $1', [operation_id]))
    .length
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }

describe('an operation', () => {
  it('starts, waits at its gate, continues when it is approved, and ends with evidence', async () => {
    const graph = { nodes: [noop('a', 0), noop('b', 0, 'a')], gates: [{ gate_id: 'go', policy, guards: ['b'] }] }
    const { operation_id, started, intent_id } = await p.startOperation(graph)
    expect(started.status).toBe(201)
    expect(started.body.command).toMatchObject({ kind: 'start', status: 'applied' })
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('eva').get(`${path}/gates/go`)).body.status === 'waiting', {
      timeout_ms: 30_000,
    })
    await reaches(operation_id, 'blocked')
    expect((await p.as('vic').get(path)).body.blocked_on).toMatchObject([{ kind: 'gate', id: 'go' }])
    const approved = await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))
    expect(approved).toMatchObject({ status: 200, body: { status: 'approved' } })
    await reaches(operation_id, 'succeeded')
    const { body } = await p.as('vic').get(path)
    expect(body).toMatchObject({ progress: { total: 2, done: 2 }, pending_commands: [], open_gates: [] })
    const evidence = (await p.as('vic').get(`${path}/evidence?limit=1000`)).body
    expect(evidence.head).toEqual(body.evidence_head)
    expect(evidence.records.map(({ kind }: { kind: string }) => kind)).toEqual(
      expect.arrayContaining(['plan', 'start', 'vote', 'gate_decision', 'node_result', 'end']),
    )
    const gate = (await p.as('vic').get(`${path}/gates/go`)).body
    expect(gate.consumed_at).not.toBeNull()
    expect((await p.as('vic').get(`/v1/intents/${intent_id}`)).body.status).toBe('fulfilled')

    const file = (await p.as('aud').get(`${path}/evidence?format=jsonl`)).text
    const { keys } = (await p.as('vic').get('/v1/evidence/keys')).body
    expect(verifyEvidence(Buffer.from(file), keys)).toMatchObject({ records: evidence.records.length })
    const [exported] = (await p.as('vic').get(`${path}/timeline?types=export.made`)).body.events
    expect(exported).toMatchObject({ actor: { name: 'aud' }, data: evidence.head })
    const audited = await p.as('aud').get(`/v1/audit?object=operation:${operation_id}&action=evidence.export`)
    expect(audited.body.items).toHaveLength(1)

    // A holder of the key could make a chain without the approval; that b began on it would still be visible.
    const [head] = file.trimEnd().split('\n').slice(-1)
    const forged = (change: (record: EvidenceRecord) => EvidenceRecord | undefined): string => {
      let prev_hash = evidence.records[0].prev_hash
      const records = evidence.records.flatMap((given: EvidenceRecord) => change(structuredClone(given)) ?? [])
      const chained = records.map((record: EvidenceRecord, i: number) => {
        const { hash: _, ...rest } = { ...record, seq: i + 1, prev_hash }
        prev_hash = digest(rest)
        return { ...rest, hash: prev_hash }
      })
      const { kid: _kid, signature: _signature, ...told } = JSON.parse(head ?? '')
      const made = exportEvidence(chained, { ...told, seq: chained.length, hash: prev_hash }, p.deps.trust.evidence_key)
      const verified = verifyEvidence(Buffer.from(made), keys)
      return 'fault' in verified ? verified.fault.why : 'holds'
    }
    const decision = ({ kind }: EvidenceRecord) => kind === 'gate_decision'
    expect(forged((record) => record)).toBe('holds')
    expect(forged((record) => (decision(record) ? undefined : record))).toMatch(
      /"b" started behind the gate "go", which no earlier record/,
    )
    expect(
      forged((record) => (decision(record) ? { ...record, subject: { ...record.subject, digest: 'x' } } : record)),
    ).toMatch(/"go" in round 1 was approved by 0 of 1 votes/)
    expect(
      forged((record) =>
        decision(record) ? { ...record, subject: { ...record.subject, status: 'rejected' } } : record,
      ),
    ).toMatch(/no earlier record approves on that digest/)
    expect(forged((record) => (decision(record) ? { ...record, at: '2999-01-01T00:00:00.000000Z' } : record))).toMatch(
      /no earlier record approves on that digest/,
    )
  }, 90_000)

  it('continues behind a bypassed gate, and its evidence says so offline', async () => {
    const graph = { nodes: [noop('a', 0)], gates: [{ gate_id: 'go', policy, guards: ['a'] }] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('both').get(`${path}/gates/go`)).body.status === 'waiting', {
      timeout_ms: 30_000,
    })
    const seen = await p.seen(operation_id, 'go')
    const broken = await p.as('both').post(`${path}/gates/go/approve`, { ...seen, break_glass: { reason } })
    expect(broken).toMatchObject({ status: 200, body: { status: 'bypassed' } })
    await reaches(operation_id, 'succeeded_with_exceptions')
    const file = (await p.as('aud').get(`${path}/evidence?format=jsonl`)).text
    const { keys } = (await p.as('vic').get('/v1/evidence/keys')).body
    expect(verifyEvidence(Buffer.from(file), keys)).toHaveProperty('head')
    expect(file).toContain('"status":"bypassed"')
  }, 90_000)

  it('starts no node after a pause was answered, and continues after a resume', async () => {
    const graph = { nodes: Array.from({ length: 12 }, (_, n) => noop(`n${n}`, 150, ...(n === 0 ? [] : [`n${n - 1}`]))) }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await attempts(operation_id)) > 1, { timeout_ms: 30_000 })
    expect((await p.as('olga').post(`${path}/pause`, { reason })).status).toBe(200)
    const begun = await attempts(operation_id)
    await reaches(operation_id, 'paused')
    expect(await attempts(operation_id)).toBe(begun)
    const inFlight = await p.query(
      `select 1 from operations.node_attempts where operation_id = $1 and phase in ('dispatched', 'running')`,
      [operation_id],
    )
    expect(inFlight).toEqual([])
    expect(await p.as('olga').post(`${path}/resume`, { reason })).toMatchObject({
      status: 200,
      body: { command: { status: 'applied' } },
    })
    await reaches(operation_id, 'succeeded')
    expect(await attempts(operation_id)).toBe(12)
  }, 90_000)

  it('holds at a rejected gate, and a retry asks again', async () => {
    const graph = {
      nodes: [noop('a', 0), noop('b', 0, 'a'), noop('c', 0, 'b')],
      gates: [{ gate_id: 'go', policy, guards: ['b'] }],
    }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    const waiting = (round: number) =>
      until(
        async () => {
          const { body } = await p.as('eva').get(`${path}/gates/go`)
          return body.status === 'waiting' && body.round === round
        },
        { what: `round ${round}` },
      )
    await waiting(1)
    expect((await p.as('eva').post(`${path}/gates/go/reject`, { round: 1, comment: 'not yet' })).status).toBe(200)
    await until(async () => (await p.as('olga').get(`${path}/nodes/b`)).body.state === 'failed', { timeout_ms: 30_000 })
    const dry = (await p.as('olga').post(`${path}/nodes/b/retry`, { reason, dry_run: true })).body
    expect(dry.effect.rearmed_gates).toEqual(['go'])
    expect(await p.as('olga').post(`${path}/nodes/b/retry`, { reason })).toMatchObject({
      status: 200,
      body: { command: { status: 'applied' }, reset_cone: dry.effect.reset_cone },
    })
    await waiting(2)
    expect((await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))).status).toBe(200)
    await reaches(operation_id, 'succeeded')
  }, 90_000)

  it('runs as its rehearsal predicted: the order of attempts, what is undone, how it ends', async () => {
    const unkept = { outputs: { n: '/n' }, outputs_schema: { type: 'object', required: ['n'] } }
    const fails = (on_failure: string) => ({ ...unkept, on_failure })
    const undo = { compensate: { executor: 'noop', with: {} } }
    const chain = (last: object) => ({
      nodes: [
        { ...noop('a', 0), ...undo },
        { ...noop('b', 0, 'a'), ...undo },
        { ...noop('boom', 0, 'b'), ...last },
        noop('after', 0, 'boom'),
      ],
      gates: [{ gate_id: 'go', policy, guards: ['b'] }],
    })
    const told = {
      seed: 7,
      approval_delay_s: 60,
      failures: [{ node_id: 'boom', attempt: 1, class: 'outputs_invalid' }],
    }
    const whatHappened = async (operation_id: string) => {
      const { body } = await p.as('olga').get(`/v1/operations/${operation_id}/timeline?limit=1000`)
      const of = (type: string) =>
        body.events.flatMap((event: { type: string; node_id: string }) => (event.type === type ? [event.node_id] : []))
      const begun = await p.query(
        `select node_id from operations.node_attempts where operation_id = $1 and role = 'run' order by fence`,
        [operation_id],
      )
      const ran = begun.map(({ node_id }) => node_id)
      return { ran, undone: of('node.compensated'), ends: await status(operation_id) }
    }
    for (const on_failure of ['compensate', 'skip_dependents', 'tolerate', 'hold']) {
      await p.query('update operations.projection set at = clock_timestamp()')
      const stated = await p
        .as('pia')
        .post('/v1/intents', { kind: 'graph', title: 'rehearsed', reason, graph: chain(fails(on_failure)) })
      // A thread may be slow to start on a busy machine: 503, and then a retry.
      const plan = await until(
        async () => {
          const reply = await p.as('pia').post(`/v1/intents/${stated.body.intent_id}/plan-preview`, { rehearse: told })
          return reply.status === 503 ? undefined : reply
        },
        { what: 'a rehearsal' },
      )
      const { plan_id, plan_hash, rehearsal } = plan.body
      const predicted = {
        ran: rehearsal.lanes
          .filter((lane: { undo: boolean }) => !lane.undo)
          .map((lane: { node_id: string }) => lane.node_id),
        undone: rehearsal.compensations,
        ends: rehearsal.ends,
      }
      const started = await p.as('olga').post(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
      const { operation_id } = started.body
      const path = `/v1/operations/${operation_id}`
      const gate = () => p.as('eva').get(`${path}/gates/go`)
      await until(async () => (await gate()).body.status === 'waiting', { timeout_ms: 30_000 })
      const { digest, round } = (await gate()).body
      await p.as('eva').post(`${path}/gates/go/approve`, { reviewed_digest: digest, round })
      // Blocked appears twice: at the gate, and where a person has to help.
      await until(async () => isDeepStrictEqual(await whatHappened(operation_id), predicted), {
        timeout_ms: 30_000,
        what: `${on_failure}: ${JSON.stringify(predicted)}`,
      })
    }
  }, 240_000)

  it('continues after a failed node was skipped, and ends with an exception', async () => {
    const unkept = { outputs: { n: '/n' }, outputs_schema: { type: 'object', required: ['n'] } }
    const graph = { nodes: [{ ...noop('a', 0), ...unkept }, noop('b', 0, 'a')] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('olga').get(`${path}/nodes/a`)).body.state === 'failed', { timeout_ms: 30_000 })
    const skipped = await p
      .as('olga')
      .post(`${path}/interventions`, { type: 'skip', node_id: 'a', payload: {}, reason })
    expect(skipped).toMatchObject({ status: 201, body: { intervention: { status: 'applied' } } })
    await reaches(operation_id, 'succeeded_with_exceptions')
  }, 90_000)

  it('accepts changes while it runs: other inputs behind a gate that asks again, another limit, an undo of a done node', async () => {
    const undo = { executor: 'noop', with: {} }
    const graph = {
      nodes: [{ ...noop('a', 0), compensate: undo }, noop('b', 0), noop('c', 0, 'a'), noop('d', 0, 'b')],
      gates: [
        { gate_id: 'go', policy, guards: ['c'] },
        { gate_id: 'last', policy, guards: ['d'] },
      ],
    }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    const intervene = (body: Record<string, unknown>) => p.as('olga').post(`${path}/interventions`, { reason, ...body })
    const applied = (type: string) => ({ status: 201, body: { intervention: { type, status: 'applied' } } })
    await reaches(operation_id, 'blocked')
    expect(await intervene({ type: 'set_limits', payload: { max_parallel: 2 } })).toMatchObject(applied('set_limits'))
    const first = await p.seen(operation_id, 'last')
    expect(
      await intervene({ type: 'set_input', node_id: 'd', payload: { input_overrides: { delay_ms: 1 } } }),
    ).toMatchObject(applied('set_input'))
    expect(await p.as('eva').post(`${path}/gates/last/approve`, first)).toMatchObject({
      status: 409,
      body: { category: 'gate_not_waiting', code: 'round_superseded' },
    })
    expect(await intervene({ type: 'trigger_compensation', node_id: 'a', payload: {} })).toMatchObject(
      applied('trigger_compensation'),
    )
    const node = async (id: string) => (await p.as('olga').get(`${path}/nodes/${id}`)).body
    await until(async () => (await node('a')).state === 'compensated', { what: 'the undo of a' })
    // Nodes that need an undone node never run.
    await until(async () => (await node('c')).state === 'skipped', { what: 'c skipped' })
    expect(await p.as('eva').post(`${path}/gates/last/approve`, await p.seen(operation_id, 'last'))).toMatchObject({
      status: 200,
      body: { status: 'approved' },
    })
    await reaches(operation_id, 'succeeded_with_exceptions')
    expect((await node('d')).inputs).toMatchObject({ effective: { delay_ms: 1 }, overridden: ['/delay_ms'] })
    expect((await node('a')).attempts.map(({ role, phase }: { role: string; phase: string }) => [role, phase])).toEqual(
      [
        ['run', 'succeeded'],
        ['undo', 'succeeded'],
      ],
    )
  }, 90_000)
})

describe('a running graph', () => {
  const waitingAt = async (operation_id: string, gate_id: string) =>
    until(
      async () => (await p.as('eva').get(`/v1/operations/${operation_id}/gates/${gate_id}`)).body.status === 'waiting',
      { what: `gate ${gate_id} waiting` },
    )
  const behindGate = async () => {
    const graph = {
      nodes: [noop('a', 0), noop('b', 0, 'a'), noop('c', 0, 'b'), noop('d', 0, 'c')],
      gates: [{ gate_id: 'go', policy, guards: ['c'] }],
    }
    const { operation_id } = await p.startOperation(graph)
    await waitingAt(operation_id, 'go')
    return { operation_id, path: `/v1/operations/${operation_id}` }
  }
  const inserted = [
    { op: 'add_node', node: noop('check', 0, 'b') },
    { op: 'add_dependency', node_id: 'c', depends_on: 'check' },
    { op: 'remove_node', node_id: 'd' },
  ]

  it('applies an approved patch: the gate asks again, the new node runs first, the removed one never', async () => {
    const { operation_id, path } = await behindGate()
    const before = await p.seen(operation_id, 'go')
    const proposal = { base_revision: 1, changes: inserted, reason }
    const dry = await p.as('olga').post(`${path}/patches`, { ...proposal, dry_run: true })
    expect(dry).toMatchObject({ status: 200, body: { effect: { held_nodes: ['c', 'd'], rearmed_gates: ['go'] } } })
    const proposed = await p.as('olga').post(`${path}/patches`, proposal)
    expect(proposed).toMatchObject({
      status: 201,
      body: {
        status: 'awaiting_approval',
        diff_graph: { added: ['check'], removed: ['d'] },
        required: { quorum: 1, groups: [{ group: 'netops', min: 1 }] },
      },
    })
    const patch = `${path}/patches/${proposed.body.patch_id}`
    expect((await p.as('vic').get(path)).body.open_patches).toMatchObject([{ patch_id: proposed.body.patch_id }])
    // Approving the old question changes nothing: held nodes do not start.
    expect((await p.as('eva').post(`${path}/gates/go/approve`, before)).status).toBe(200)
    await until(async () => (await p.as('vic').get(path)).body.blocked_on[0]?.kind === 'patch', { timeout_ms: 30_000 })
    const approved = await p.as('eva').post(`${patch}/approve`, { reviewed_digest: proposed.body.digest })
    expect(approved).toMatchObject({ status: 200, body: { status: 'applied', command: { status: 'applied' } } })
    const after = await p.seen(operation_id, 'go')
    expect(after.round).toBe(before.round + 1)
    expect(after.reviewed_digest).not.toBe(before.reviewed_digest)
    expect(await p.as('eva').post(`${path}/gates/go/approve`, before)).toMatchObject({
      status: 409,
      body: { code: 'round_superseded' },
    })
    expect((await p.as('eva').post(`${path}/gates/go/approve`, after)).status).toBe(200)
    await reaches(operation_id, 'succeeded')
    const began = await p.query<{ node_id: string }>(
      'select node_id from operations.node_attempts where operation_id = $1 order by fence',
      [operation_id],
    )
    expect(began.map(({ node_id }) => node_id)).toEqual(['a', 'b', 'check', 'c'])
    expect((await p.as('vic').get(`${path}/graph`)).body).toMatchObject({ plan_revision: 2 })
    expect((await p.as('vic').get(`${path}/graph?revision=1`)).body.nodes).toHaveLength(4)
    const types = (await p.as('vic').get(`${path}/timeline?limit=1000`)).body.events.map(
      ({ type }: { type: string }) => type,
    )
    expect(types.filter((type: string) => type.startsWith('patch.'))).toEqual([
      'patch.awaiting_approval',
      'patch.voted',
      'patch.approved',
      'patch.applied',
    ])
  }, 90_000)

  it('waits no longer for a gate that a patch has removed', async () => {
    const gates = [
      { gate_id: 'go', policy, guards: ['a'] },
      { gate_id: 'stay', policy, guards: ['b'] },
    ]
    const { operation_id } = await p.startOperation({ nodes: [noop('a', 0), noop('b', 0)], gates })
    const path = `/v1/operations/${operation_id}`
    for (const { gate_id } of gates) await waitingAt(operation_id, gate_id)
    const changes = [{ op: 'remove_gate', gate_id: 'go' }]
    const { body } = await p.as('olga').post(`${path}/patches`, { base_revision: 1, changes, reason })
    const vote = { reviewed_digest: body.digest }
    expect((await p.as('eva').post(`${path}/patches/${body.patch_id}/approve`, vote)).status).toBeLessThan(300)
    const reported = async () => {
      const [row] = await p.query(
        `select o.open_gates, n.state from operations.operations o join operations.nodes n using (operation_id)
         where operation_id = $1 and node_id = 'a'`,
        [operation_id],
      )
      const { blocked_on } = (await p.as('vic').get(path)).body
      return { ...row, blocked_on: blocked_on.map(({ id }: { id: string }) => id) }
    }
    const wanted = { open_gates: 1, state: 'succeeded', blocked_on: ['stay'] }
    await until(async () => isDeepStrictEqual(await reported(), wanted), {
      timeout_ms: 30_000,
      what: 'only stay waits',
    })
    expect((await p.as('vic').get(`${path}/gates/go`)).body.status).toBe('cancelled')
    await p.as('eva').post(`${path}/gates/stay/approve`, await p.seen(operation_id, 'stay'))
    await reaches(operation_id, 'succeeded')
  }, 90_000)

  it('refuses a patch with the exact reason, and nothing changes', async () => {
    const { operation_id, path } = await behindGate()
    const propose = (changes: unknown[], base_revision = 1, by: 'olga' | 'pia' | 'eva' = 'olga') =>
      p.as(by).post(`${path}/patches`, { base_revision, changes, reason })
    const limits = [{ op: 'set_limits', max_parallel: 3 }]
    const refusal = (code: string, status = 409) => ({ status, body: { category: 'patch_not_applicable', code } })
    expect(await propose(limits, 7)).toMatchObject(refusal('base_revision_moved'))
    expect(await propose([{ op: 'remove_node', node_id: 'b' }])).toMatchObject(refusal('node_already_dispatched'))
    expect(
      await propose([
        { op: 'add_dependency', node_id: 'c', depends_on: 'd' },
        { op: 'update_node', node_id: 'd', set: { executor: 'magic' } },
      ]),
    ).toMatchObject({
      ...refusal('unsound', 422),
      body: {
        violations: expect.arrayContaining([
          expect.objectContaining({ code: 'cycle' }),
          expect.objectContaining({ code: 'unknown_executor' }),
        ]),
      },
    })
    expect(await propose(limits, 1, 'eva')).toMatchObject({ status: 403, body: { code: 'permission_missing' } })
    const first = (await propose([{ op: 'update_node', node_id: 'c', set: { name: 'C' } }], 1, 'pia')).body
    expect(await propose([{ op: 'update_node', node_id: 'c', set: { name: 'CC' } }])).toMatchObject(
      refusal('patch_overlap'),
    )
    const at = `${path}/patches/${first.patch_id}`
    const vote = { reviewed_digest: first.digest }
    p.people.pia.roles.push('approver')
    p.people.pia.groups.push('netops')
    await until(async () => (await p.as('pia').get('/v1/me')).body.permissions.includes('patch:decide'))
    expect(await p.as('pia').post(`${at}/approve`, vote)).toMatchObject({
      status: 403,
      body: { code: 'self_patch_approval' },
    })
    p.people.pia.roles.pop()
    p.people.pia.groups.pop()
    expect(await p.as('ivo').post(`${at}/approve`, vote)).toMatchObject({ status: 403, body: { code: 'not_eligible' } })
    expect(await p.as('eva').post(`${at}/approve`, { reviewed_digest: `sha256:${'0'.repeat(64)}` })).toMatchObject({
      status: 412,
      body: { category: 'version_conflict', code: 'digest_moved' },
    })
    expect(await p.as('vic').post(`${at}/approve`, vote)).toMatchObject({ status: 403 })
    // Another patch on the same base is applied: this one is superseded, and its rebase is offered.
    const limiting = (await propose(limits)).body
    expect(
      await p.as('eva').post(`${path}/patches/${limiting.patch_id}/approve`, { reviewed_digest: limiting.digest }),
    ).toMatchObject({ status: 200, body: { status: 'applied' } })
    expect(await p.as('eva').post(`${at}/approve`, vote)).toMatchObject(refusal('base_revision_moved'))
    const overtaken = (await p.as('vic').get(at)).body
    expect(overtaken).toMatchObject({ status: 'not_applicable', rebase: { base_revision: 2 } })
    const again = await propose(overtaken.rebase.changes, 2)
    expect(again.status).toBe(201)
    const rejected = await p.as('eva').post(`${path}/patches/${again.body.patch_id}/reject`, { comment: 'no' })
    expect(rejected).toMatchObject({ status: 200, body: { status: 'rejected' } })
    expect(await p.as('eva').post(`${path}/patches/${again.body.patch_id}/reject`, { comment: 'no' })).toMatchObject({
      status: 409,
      body: { category: 'invalid_state_transition', code: 'patch_closed' },
    })
    const own = (await propose([{ op: 'set_limits', max_parallel: 4 }], 2)).body
    expect(await p.as('olga').post(`${path}/patches/${own.patch_id}/reject`, { comment: 'no' })).toMatchObject({
      body: { status: 'withdrawn' },
    })
    const open = (await propose([{ op: 'update_node', node_id: 'c', set: { name: 'C' } }], 2)).body
    expect((await p.as('olga').post(`${path}/cancel`, { reason })).status).toBe(200)
    expect((await p.as('vic').get(`${path}/patches/${open.patch_id}`)).body.status).toBe('not_applicable')
    expect(await propose(limits, 2)).toMatchObject({ status: 409, body: { category: 'invalid_state_transition' } })
    await reaches(operation_id, 'cancelled')
    const held = await p.query('select 1 from operations.nodes where operation_id = $1 and hold_patch_id is not null', [
      operation_id,
    ])
    expect(held).toEqual([])
    expect((await p.as('vic').get(path)).body).toMatchObject({ max_parallel: 3, plan_revision: 2 })
  }, 90_000)

  it('is patched completely or not at all, however close its end is', async () => {
    const outcomes = new Set<string>()
    for (let round = 0; round < 6; round++) {
      const { operation_id } = await p.startOperation({ nodes: [noop('a', 40 * round), noop('b', 0, 'a')] })
      const path = `/v1/operations/${operation_id}`
      const changes = [
        { op: 'add_node', node: noop('n', 0, 'a') },
        { op: 'add_dependency', node_id: 'b', depends_on: 'n' },
      ]
      const proposed = await p.as('olga').post(`${path}/patches`, { base_revision: 1, changes, reason })
      const vote = { reviewed_digest: proposed.body.digest ?? '' }
      const answers =
        proposed.status === 201
          ? await Promise.all(
              [0, 1].map((instance) =>
                p
                  .as(instance === 0 ? 'eva' : 'ada')
                  .post(`${path}/patches/${proposed.body.patch_id}/approve`, vote, { instance }),
              ),
            )
          : [proposed]
      await reaches(operation_id, 'succeeded')
      const rows = await p.query<{ node_id: string }>(
        'select node_id from operations.node_attempts where operation_id = $1 order by fence',
        [operation_id],
      )
      const whole = answers.filter(({ status }) => status === 200)
      expect(whole.length).toBeLessThanOrEqual(1)
      expect(rows.map(({ node_id }) => node_id)).toEqual(whole.length === 1 ? ['a', 'n', 'b'] : ['a', 'b'])
      for (const { status } of answers) expect([200, 409]).toContain(status)
      for (const { body } of answers) outcomes.add(body.code ?? body.status)
    }
    expect(outcomes.size).toBeGreaterThan(0)
  }, 90_000)
})

describe('work of an external agent', () => {
  const external = (job: string, more: Record<string, unknown> = {}) => ({
    node_id: 'job',
    executor: 'external',
    pool: 'lab',
    with: { job, inputs: { name: 'ada' } },
    ...more,
  })
  const start = async (node: Record<string, unknown>) => {
    handed.length = 0
    const { operation_id } = await p.startOperation({ nodes: [node] })
    return { operation_id, path: `/v1/operations/${operation_id}` }
  }
  const work = () => until(() => handed.at(-1), { what: 'the work at the agent' })
  const say = async (given: Work, message: Record<string, unknown>) => {
    const { operation_id, node_id, attempt, generation, fence, execution_token, results_url } = given
    const ids = { result_id: randomUUID(), operation_id, node_id, attempt, generation, fence }
    const once = async () => {
      const response = await fetch(results_url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${execution_token}` },
        body: JSON.stringify({ ...ids, ...message }),
      })
      return { status: response.status, body: await response.json() }
    }
    // A busy machine may answer 503: an agent then repeats its message.
    return until(
      async () => {
        const answer = await once()
        return answer.status === 503 ? undefined : answer
      },
      { what: 'an answer other than 503' },
    )
  }
  const refusal = (code: string, status = 409) => ({ status, body: { category: 'execution_result_rejected', code } })

  it('is taken, reported and ended by the reference agent, and by one of shell and curl', async () => {
    answerBy = byAgent
    const lab = await start(external('greet'))
    await reaches(lab.operation_id, 'succeeded')
    expect((await p.as('vic').get(`${lab.path}/nodes/job`)).body).toMatchObject({
      state: 'succeeded',
      outputs: { greeting: 'hello ada' },
      attempts: [{ phase: 'succeeded', executor: 'external', pool: 'lab', log: { complete: true } }],
    })
    const log = (await p.as('vic').get(`${lab.path}/nodes/job/logs`)).body
    expect(log.lines.map(({ text }: { text: string }) => text)).toContain('greets ada')
    const shell = await start(external('uptime', { pool: 'shell', outputs: { kernel: '/kernel' } }))
    await reaches(shell.operation_id, 'succeeded')
    expect((await p.as('vic').get(`${shell.path}/nodes/job`)).body.outputs).toEqual({ kernel: expect.any(String) })
  }, 90_000)

  it('is undone by an agent too, under its own key; messages of the first attempt no longer end anything', async () => {
    answerBy = byAgent
    handed.length = 0
    const node = external('greet', { compensate: { with: { job: 'greet', inputs: { name: 'nobody' } } } })
    const rest = { node_id: 'rest', kind: 'wait', with: { duration_s: 600 }, depends_on: ['job'] }
    const { operation_id } = await p.startOperation({ nodes: [node, rest] })
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('vic').get(`${path}/nodes/rest`)).body.state === 'running', {
      timeout_ms: 30_000,
    })
    const [first] = handed as [Work]
    await p.as('olga').post(`${path}/cancel`, { reason, mode: 'compensate' })
    await reaches(operation_id, 'cancelled')
    const undo = handed.at(-1) as Work
    expect(undo).toMatchObject({ attempt: 1, inputs: { name: 'nobody' }, key: `${operation_id}:job:c1` })
    expect(undo.fence).toBeGreaterThan(first.fence)
    const { body } = await p.as('vic').get(`${path}/nodes/job`)
    expect(body).toMatchObject({ state: 'compensated', outputs: { greeting: 'hello ada' } })
    const log = (await p.as('vic').get(`${path}/nodes/job/logs?role=undo`)).body
    expect(log.lines.map(({ text }: { text: string }) => text)).toEqual(['greets nobody'])
    expect(await say(first, { phase: 'succeeded', sequence: 99, outputs: {} })).toMatchObject(refusal('attempt_closed'))
  }, 90_000)

  it('holds its operation with an error whose text is cut within a character, as with any other', async () => {
    answerBy = async (work) => {
      const report = createReporter(work)
      await report('started')
      await report('failed', { error: { class: 'refused', message: '\u{1F600}'.repeat(200), retryable: false } })
    }
    const { operation_id, path } = await start(external('greet'))
    await reaches(operation_id, 'blocked')
    const { blocked_on } = (await p.as('vic').get(path)).body
    expect(blocked_on).toMatchObject([{ kind: 'failed_node', message: expect.stringMatching(/\u{1F600}\uFFFD$/u) }])
    await p.as('olga').post(`${path}/cancel`, { reason })
    await reaches(operation_id, 'failed', 'cancelled')
  }, 90_000)

  it('names secrets by reference: the worker of the job resolves them, and they appear nowhere', async () => {
    answerBy = byAgent
    const node = external('greet', {
      secrets: { password: 'secret://env/FLOW_PASSWORD#1' },
      with: { job: 'greet', inputs: { name: 'ada', password: { $secret: 'password' } } },
    })
    const { operation_id } = await start(node)
    expect(await work()).toMatchObject({
      inputs: { name: 'ada', password: { $secret: 'password' } },
      secrets: { password: 'secret://env/FLOW_PASSWORD#1' },
    })
    expect(JSON.stringify(handed)).not.toContain('hunter2')
    await reaches(operation_id, 'succeeded')
  }, 90_000)

  it('has one end: repeated, late, stale, foreign or disordered messages get their exact answer and change nothing', async () => {
    answerBy = async () => {}
    const { operation_id, path } = await start(external('greet', { outputs_schema: { type: 'object' } }))
    const given = await work()
    const done = { phase: 'succeeded', sequence: 5, outputs: { n: 1 } }
    expect(await say(given, done)).toMatchObject(refusal('not_dispatched'))
    expect(await say(given, { phase: 'heartbeat', sequence: 1 })).toMatchObject(refusal('not_dispatched'))
    expect(await say({ ...given, execution_token: `exe_${'x'.repeat(43)}` }, done)).toMatchObject({ status: 401 })
    expect(await say({ ...given, node_id: 'other' }, done)).toMatchObject({
      status: 400,
      body: { code: 'id_mismatch' },
    })
    // Its token opens only this route.
    const headers = { authorization: `Bearer ${given.execution_token}` }
    expect(await p.as('vic').get(path, { headers })).toMatchObject({ status: 401 })
    expect(await fetch(new URL('/internal/v1/events', given.results_url), { headers })).toMatchObject({ status: 401 })
    const started = { result_id: randomUUID(), phase: 'started', sequence: 2 }
    expect(await say(given, started)).toMatchObject({ status: 200, body: { accepted: true, duplicate: false } })
    expect(await say(given, started)).toMatchObject({ status: 200, body: { accepted: true, duplicate: true } })
    expect(await say(given, { ...started, phase: 'progress' })).toMatchObject(refusal('result_conflict'))
    // Another agent that begins the same work is refused.
    expect(await say(given, { phase: 'started', sequence: 3 })).toMatchObject(refusal('not_dispatched'))
    expect(await say({ ...given, attempt: 2 }, done)).toMatchObject(refusal('stale_attempt'))
    expect(await say({ ...given, generation: 9 }, done)).toMatchObject(refusal('stale_attempt'))
    expect(await say({ ...given, fence: given.fence - 1 }, done)).toMatchObject(refusal('stale_fence'))
    const line = (text: string) => ({ seq: 1, time: new Date().toISOString(), stream: 'log', level: 'info', text })
    const progress = { phase: 'progress', sequence: 4, progress: { percent: 50 }, lines: [line('one')] }
    const etag = (await p.as('vic').get(`${path}/nodes/job`)).headers.get('etag') ?? ''
    expect((await say(given, progress)).status).toBe(200)
    const known = { headers: { 'if-none-match': etag } }
    expect(await p.as('vic').get(`${path}/nodes/job`, known)).toMatchObject({
      status: 200,
      body: { progress: { percent: 50 } },
    })
    for (const whole of [path, `${path}/graph`]) expect((await p.as('vic').get(whole, known)).status).toBe(200)
    // An earlier sequence number no longer has an effect.
    expect((await say(given, { phase: 'progress', sequence: 3, progress: { percent: 10 } })).status).toBe(200)
    expect((await p.as('vic').get(`${path}/nodes/job`)).body.progress).toEqual({ percent: 50 })
    expect(await say(given, { ...progress, sequence: 5, lines: [line('two')] })).toMatchObject(
      refusal('log_conflict', 422),
    )
    const [first, second] = await Promise.all([say(given, done), say(given, { ...done, phase: 'failed' })])
    expect([first.status, second.status].sort()).toEqual([200, 409])
    const [won, lost] = first.status === 200 ? [first, second] : [second, first]
    expect(won.body).toMatchObject({ accepted: true })
    expect(lost).toMatchObject(refusal('attempt_closed'))
    await until(async () => ['succeeded', 'failed'].includes((await p.as('vic').get(`${path}/nodes/job`)).body.state), {
      timeout_ms: 30_000,
    })
    const { body } = await p.as('vic').get(`${path}/nodes/job`)
    expect(body.state).toBe(first.status === 200 ? 'succeeded' : 'failed')
    expect(body.attempts).toHaveLength(1)
    const refused = (await p.as('vic').get(`${path}/timeline?types=node.result_refused`)).body.events
    expect(refused.map(({ data }: { data: { code: string } }) => data.code)).toEqual([
      'not_dispatched',
      'not_dispatched',
      'result_conflict',
      'not_dispatched',
      'stale_attempt',
      'stale_attempt',
      'stale_fence',
      'log_conflict',
      'attempt_closed',
    ])
    if (body.state === 'failed') await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason })
  }, 90_000)

  it('writes one finite log, whatever it sends', async () => {
    answerBy = async () => {}
    const { operation_id, path } = await start(external('greet'))
    const given = await work()
    const line = (seq: number, text: string) => ({
      seq,
      time: new Date().toISOString(),
      stream: 'log',
      level: 'info',
      text,
    })
    expect((await say(given, { phase: 'started', sequence: 1 })).status).toBe(200)
    const beat = (sequence: number, ...lines: unknown[]) => say(given, { phase: 'heartbeat', sequence, lines })
    expect(await beat(2, line(1, 'a'), line(1, 'b'))).toMatchObject(refusal('log_conflict', 422))
    expect((await beat(3, line(2, 'two'), line(1, 'one'), line(1, 'one'))).status).toBe(200)
    await p.query(`update operations.node_attempts set log_bytes = 50 * 1024 * 1024 - 10 where operation_id = $1`, [
      operation_id,
    ])
    expect((await beat(4, line(3, 'x'.repeat(100)))).status).toBe(200)
    expect((await beat(5, line(4, 'y'), line(5, 'z'))).status).toBe(200)
    const { lines } = (await p.as('vic').get(`${path}/nodes/job/logs`)).body
    expect(lines.map(({ seq, text }: { seq: number; text: string }) => `${seq} ${text.slice(0, 3)}`)).toEqual([
      '1 one',
      '2 two',
      '3 xxx',
      '4 The',
    ])
    expect((await say(given, { phase: 'succeeded', sequence: 6, outputs: {} })).status).toBe(200)
    await reaches(operation_id, 'succeeded')
  }, 60_000)

  it('fails definitely if no agent takes it, and is unknown if its time runs out', async () => {
    const gone = await start(external('greet', { pool: 'gone' }))
    await until(async () => (await p.as('vic').get(`${gone.path}/nodes/job`)).body.error_class === 'not_picked_up', {
      timeout_ms: 30_000,
    })
    answerBy = async () => {}
    const idle = await start(external('greet', { timeouts: { start_s: 1 } }))
    const late = await work()
    await until(async () => (await p.as('vic').get(`${idle.path}/nodes/job`)).body.error_class === 'not_picked_up', {
      timeout_ms: 30_000,
    })
    expect(await say(late, { phase: 'started', sequence: 1 })).toMatchObject(refusal('attempt_closed'))
    const overdue = await start(external('greet', { timeouts: { run_s: 2 }, idempotent: false }))
    await createReporter(await work())('started')
    await until(async () => (await p.as('vic').get(`${overdue.path}/nodes/job`)).body.state === 'outcome_unknown', {
      timeout_ms: 30_000,
    })
    for (const { operation_id } of [gone, idle, overdue])
      expect((await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { reason })).status).toBe(200)
  }, 90_000)

  it('learns of a forced cancel in the answer to its next message', async () => {
    const heard: Answer[] = []
    answerBy = async (given) => {
      const report = createReporter(given)
      await report('started')
      const stopped = await until(
        async () => {
          const answer = await report('heartbeat')
          return answer.cancel_requested || answer.status !== 200 ? answer : undefined
        },
        { timeout_ms: 30_000, every_ms: 100 },
      )
      heard.push(stopped)
      await report('failed', { error: { class: 'cancelled', message: 'It was told to stop.' } })
    }
    const { operation_id, path } = await start(external('stall', { timeouts: { run_s: 600 } }))
    await work()
    expect((await p.as('both').post(`${path}/cancel`, { reason })).status).toBe(200)
    await p.query(
      `update operations.operation_control set cancelled_at = cancelled_at - interval '1 h' where operation_id = $1`,
      [operation_id],
    )
    expect((await p.as('both').post(`${path}/cancel`, { reason, mode: 'force' })).status).toBe(200)
    await reaches(operation_id, 'cancelled')
    expect(heard[0]?.cancel_requested).toBe(true)
    expect((await p.as('vic').get(`${path}/nodes/job`)).body).toMatchObject({ error_class: 'cancelled' })
  }, 90_000)
})

describe('a program', () => {
  const report = (more: Record<string, unknown> = {}) => ({
    node_id: 'report',
    executor: 'command',
    secrets: { password: 'secret://env/FLOW_PASSWORD#1' },
    with: { program: 'report', args: ['ada'], env: { PASSWORD: { $secret: 'password' } }, ...more },
  })

  it('is refused for an output that it cannot take, and its worker continues', async () => {
    const number = { node_id: 'number', executor: 'noop', with: { outputs: { n: 5 } }, outputs: { n: '/n' } }
    const told = { ...report({ stdin: { $from: 'nodes/number/outputs/n' } }), depends_on: ['number'] }
    const { operation_id } = await p.startOperation({ nodes: [number, told] })
    await reaches(operation_id, 'blocked')
    expect((await p.as('vic').get(`/v1/operations/${operation_id}/nodes/report`)).body).toMatchObject({
      ...{ state: 'failed', error_class: 'refused' },
      error_message: 'The inputs of the step do not fit: /stdin must be a string. No work has begun.',
    })
    await reaches((await p.startOperation({ nodes: [report()] })).operation_id, 'succeeded')
  }, 90_000)

  it('runs with its inputs; its whole log, outputs and files are stored, and no secret', async () => {
    const after = {
      ...report({ args: [{ $from: 'nodes/report/outputs/name' }] }),
      node_id: 'again',
      depends_on: ['report'],
    }
    const first = { ...report(), outputs: { name: '/name' } }
    const { operation_id } = await p.startOperation({ nodes: [first, after] })
    const path = `/v1/operations/${operation_id}`
    await reaches(operation_id, 'succeeded')
    const { body } = await p.as('vic').get(`${path}/nodes/report`)
    expect(body).toMatchObject({ outputs: { name: 'ada' }, attempts: [{ log: { lines: 3001, complete: true } }] })
    const log = (await p.as('vic').get(`${path}/nodes/report/logs?limit=2000`)).body
    expect(log.lines.map(({ seq }: { seq: number }) => seq)).toEqual(Array.from({ length: 2000 }, (_, i) => i + 1))
    expect(log.lines[0]).toMatchObject({ text: 'reports ada with •••', stream: 'stdout' })
    const [artifact] = body.artifacts
    expect(artifact).toMatchObject({ name: 'report.txt', media_type: 'text/plain' })
    const kept = await p.as('vic').get(`${path}/artifacts/${artifact.artifact_id}/content`)
    expect(kept.text).toBe('kept, but not •••')
  }, 90_000)

  it.each([
    ['is not in the policy', { program: 'reboot' }, 'unknown_executor', '/nodes/report/with/program'],
    ['is given other arguments', { args: ['-rf'] }, 'schema_violation', '/nodes/report/with/args'],
    [
      'shows a secret to the machine',
      { args: [{ $secret: 'password' }] },
      'schema_violation',
      '/nodes/report/with/args/0',
    ],
    ['runs too long', { timeout_s: 601 }, 'schema_violation', '/nodes/report/with/timeout_s'],
  ])('that %s is refused before anyone reviews the plan', async (_what, values, code, pointer) => {
    const graph = { nodes: [report(values)] }
    const intent = await p.as('pia').post('/v1/intents', { kind: 'graph', title: 'a test', reason, graph })
    const { status, body } = await p.as('pia').post(`/v1/intents/${intent.body.intent_id}/plan-preview`, {})
    expect({ status, body }).toMatchObject({ status: 422, body: { category: 'validation_error', code } })
    expect(body.violations[0].pointer).toBe(pointer)
  })

  it('that is not in the policy cannot be added by a patch', async () => {
    const { operation_id } = await p.startOperation({ nodes: [noop('a', 2000), noop('b', 0, 'a')] })
    const { status, body } = await p
      .as('olga')
      .post(`/v1/operations/${operation_id}/patches`, {
        base_revision: 1,
        reason,
        changes: [{ op: 'add_node', node: { ...report({ program: 'reboot' }), depends_on: ['a'] } }],
      })
    expect({ status, body }).toMatchObject({ status: 422, body: { code: 'unsound' } })
    expect(body.violations).toMatchObject([{ code: 'unknown_executor' }])
    await reaches(operation_id, 'succeeded')
  }, 60_000)
})

describe('conditions', () => {
  it('that are slow together fail those that come last, and hold up no record of their operation', async () => {
    const list = `[${Array.from({ length: 180 }, (_, i) => i)}]`
    const slow = `${list}.all(x, ${list}.all(y, ${Array(12).fill('x + y < 1000').join(' && ')}))`
    const after = Array.from({ length: 80 }, (_, i) => ({ ...noop(`n${i}`, 0, 'a'), when: `${slow} || ${i} < 0` }))
    const { operation_id } = await p.startOperation({ nodes: [noop('a', 0), ...after] })
    await reaches(operation_id, 'blocked')
    const path = `/v1/operations/${operation_id}`
    const { items } = (await p.as('vic').get(`${path}/nodes?state=failed&page_size=1`)).body
    expect(items).toMatchObject([
      { error_class: 'expression_error', error_message: expect.stringMatching(/together$/) },
    ])
    await p.as('olga').post(`${path}/cancel`, { reason })
    await reaches(operation_id, 'cancelled')
  }, 90_000)
})

describe('read models', () => {
  it('match their events after all of this, and manual edits are found', async () => {
    expect(await readModelDifferences(p.deps.db)).toEqual([])
    const graph = { nodes: [noop('a', 0), noop('b', 0, 'a')], gates: [{ gate_id: 'go', policy, guards: ['a'] }] }
    const { operation_id } = await p.startOperation(graph)
    const path = `/v1/operations/${operation_id}`
    await until(async () => (await p.as('eva').get(`${path}/gates/go`)).body.status === 'waiting', {
      timeout_ms: 30_000,
    })
    await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))
    await reaches(operation_id, 'succeeded')
    const own = 'where operation_id = $1'
    const edits: [string, string, string][] = [
      ['timeline', `update operations.operation_timeline_view set reason = 'x' ${own} and seq = 3`, 'event 3'],
      ['timeline', `delete from operations.operation_timeline_view ${own} and seq = 2`, 'event 2'],
      ['nodes', `update operations.nodes set state = 'failed' ${own} and node_id = 'b'`, 'b is failed, not succeeded'],
      ['gates', `update operations.gates set status = 'rejected' ${own}`, 'go is rejected'],
      [
        'summary',
        `update operations.operations set engine_status = 'failed' ${own}`,
        'the operation is failed, not succeeded',
      ],
      ['evidence', `update operations.operation_evidence_index set kind = 'end' ${own} and seq = 1`, 'record 1: hash'],
    ]
    for (const [, edit] of edits) expect(await p.query(edit, [operation_id])).toEqual([])
    const found = await readModelDifferences(p.deps.db)
    for (const [model, , what] of edits) expect(found).toContainEqual({ operation_id, model, what })
    expect(await p.deps.db.transaction((tx) => repairTimeline(tx, operation_id))).toBe(2)
    const left = (await readModelDifferences(p.deps.db)).map(({ model }) => model)
    expect(left.sort()).toEqual(['evidence', 'gates', 'nodes', 'summary'])
  }, 90_000)
})
