import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ScheduleView } from '../../../apps/shared/contracts/operations/schedules.ts'
import { until } from '../../support/until.ts'
import { home, hooks, json, login, signalbox } from '../client.ts'

describe('a change from intent to end', () => {
  let ended = ''
  const intent = {
    kind: 'graph',
    title: 'two steps and a gate',
    reason: 'cli',
    targets: [],
    graph: {
      nodes: ['first', 'second'].map((node_id) => ({
        node_id,
        kind: 'task',
        executor: 'noop',
        depends_on: node_id === 'second' ? ['first'] : [],
        with: { delay_ms: 0 },
        idempotent: true,
      })),
      gates: [
        { gate_id: 'go', question: 'Go on?', policy: { approvals: { quorum: 1, groups: [] } }, guards: ['second'] },
      ],
    },
  }

  const started = async (graph: object): Promise<string> => {
    const create = ['intent', 'create', '-f', '-', '-o', 'id']
    const created = await signalbox('olga', create, JSON.stringify({ ...intent, graph }))
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
    const start = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
    return (await signalbox('olga', start)).out.trim()
  }

  it('is created, planned, started, waits for a person, is approved on the shown digest, and ends', async () => {
    await Promise.all([login('olga'), login('eva')])
    writeFileSync(join(home, 'intent.json'), JSON.stringify(intent))
    const ahead = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '--dry-run'])
    expect(ahead.out).toMatch(/^For no resource\nRisk \w+ {3}2 nodes, 1 gate, .*\nGate {2}go {3}Go on\?/)
    expect((await signalbox('olga', ['intent', 'list', '-o', 'json'])).out).not.toContain(intent.title)
    const intent_id = (await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])).out.trim()
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', intent_id.slice(-8), '-o', 'json']),
    )
    expect(await signalbox('olga', ['plan', 'start', plan.plan_id, '--yes'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--digest'),
    })
    const started = await signalbox('olga', [
      'plan',
      'start',
      plan.plan_id,
      '--yes',
      '--digest',
      plan.plan_hash,
      '-o',
      'id',
    ])
    const id = started.out.trim()
    const waits = await signalbox('olga', ['op', 'wait', id.slice(-8), '--timeout', '60s'])
    expect(waits).toMatchObject({ code: 4, out: expect.stringContaining('gate go') })
    expect((await signalbox('eva', ['inbox'])).out).toContain('two steps and a gate')
    const { digest } = json<{ digest: string }>(
      await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']),
    )
    expect(await signalbox('eva', ['gate', 'show', 'nowhere'])).toMatchObject({
      code: 1,
      err: 'No waiting gate is named nowhere. Name the operation with --op.\n',
    })
    const approve = ['gate', 'approve', 'go', '--op', id, '--yes', '--digest']
    expect(await signalbox('eva', [...approve, `sha256:${'0'.repeat(64)}`])).toMatchObject({
      code: 7,
      err: expect.stringContaining('version_conflict/digest_moved'),
    })
    expect(await signalbox('eva', [...approve, digest])).toMatchObject({
      code: 0,
      out: expect.stringContaining('APPROVED'),
    })
    expect(await signalbox('eva', [...approve, digest])).toMatchObject({
      code: 7,
      err: expect.stringMatching(/gate_not_waiting\/already_(decided|consumed)/),
    })
    const watched = await signalbox('olga', ['op', 'watch', id])
    expect(watched).toMatchObject({ code: 0, out: expect.stringContaining('node.succeeded') })
    expect(watched.out.trim().split('\n').at(-1)).toMatch(/^SUCCEEDED {3}two steps and a gate/)
    ended = id
  })

  it('is followed by scripts: each line of the output is JSON, also of a log', async () => {
    const lines = async (...args: string[]) => {
      const { code, out, err } = await signalbox('olga', args)
      expect(code, err).toBe(0)
      return out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    }
    const watched = await lines('op', 'watch', ended, '--jsonl')
    expect(watched.map(({ type }) => type)).toContain('node.succeeded')
    expect(await lines('op', 'wait', ended, '--jsonl')).toMatchObject([{ operation_id: ended, status: 'succeeded' }])
    expect((await signalbox('olga', ['op', 'wait', ended, '-o', 'id'])).out).toBe(`${ended}\n`)
    const types = await signalbox('olga', ['op', 'watch', ended, '--select', 'type'])
    expect(types).toMatchObject({ code: 0, err: expect.stringMatching(/^SUCCEEDED/) })
    expect(types.out.trim().split('\n')).toEqual(watched.map(({ type }) => type))
    const request = { method: 'GET', url: `${hooks.url}/asked` }
    const asked = await started({ nodes: [{ node_id: 'ask', executor: 'http', with: { request }, idempotent: true }] })
    expect(await signalbox('olga', ['op', 'wait', asked])).toMatchObject({ code: 0 })
    const log = ['op', 'logs', 'ask', '--op', asked]
    const [line = {}] = await lines(...log, '--jsonl')
    expect(line).toMatchObject({ seq: 1, text: expect.any(String) })
    expect((await signalbox('olga', [...log, '--select', '$[0].text'])).out).toBe(`${line.text}\n`)
    expect((await signalbox('olga', log)).out).toContain(`${line.text}\n`)
  })

  it('is not rolled back if it changed nothing, and a rollback takes no key for its several requests', async () => {
    const rollback = (...more: string[]) => signalbox('olga', ['op', 'rollback', ended.slice(-8), ...more])
    expect(await rollback('--dry-run')).toMatchObject({
      code: 7,
      err: expect.stringContaining('invalid_state_transition/nothing_changed'),
    })
    expect(await rollback('--idempotency-key', 'k')).toMatchObject({ code: 2, err: expect.stringContaining('no key') })
  })

  it('its evidence is a file that anyone can verify offline, and a forged line is named', async () => {
    const id = ended
    writeFileSync(join(home, 'keys.json'), (await signalbox('olga', ['evidence', 'keys'])).out)
    const { out: exported } = await signalbox('olga', ['evidence', 'export', id.slice(-8)])
    writeFileSync(join(home, 'evidence.jsonl'), exported)
    writeFileSync(join(home, 'forged.jsonl'), exported.replace('"seq":2,', '"seq":2, '))
    const nowhere = { SIGNALBOX_URL: 'http://127.0.0.1:1' }
    const verify = (file: string, ...more: string[]) =>
      signalbox('nobody', ['evidence', 'verify', file, '--keys', 'keys.json', ...more], '', nowhere)
    expect(await verify('evidence.jsonl')).toMatchObject({ code: 0, out: expect.stringContaining(`operation ${id}`) })
    expect((await verify('evidence.jsonl')).out).toMatch(/COUNTED .*\n(NOT )?ENDED /)
    expect(await verify('evidence.jsonl', '--require-signatures')).toMatchObject({
      code: 5,
      err: expect.stringMatching(/has approvals without a signature, in records \d+\./),
    })
    expect(await verify('forged.jsonl')).toMatchObject({
      code: 5,
      err: expect.stringMatching(/^BROKEN {3}forged\.jsonl, line 2: record 2: /),
    })
    const mistaken = ['evidence', 'verify', 'evidence.jsonl', '--keys', 'evidence.jsonl']
    expect(await signalbox('nobody', mistaken, '', nowhere)).toMatchObject({
      code: 2,
      err: expect.stringContaining('evidence.jsonl is not JSON, so it holds no keys.'),
    })
    expect(await signalbox('olga', ['evidence', 'keys', '--people'])).toMatchObject({ code: 7 })
    await login('ada')
    const people = await signalbox('ada', ['evidence', 'keys', '--people'])
    expect(JSON.parse(people.out)).toEqual({ people: [] })
    writeFileSync(join(home, 'people.json'), people.out)
    expect(await verify('evidence.jsonl', '--people', 'people.json')).toMatchObject({
      code: 0,
      out: expect.stringContaining("SIGNED   0 votes with passkeys; people.json vouches that a key is its voter's"),
    })
    expect(await verify('evidence.jsonl', '--people', 'keys.json')).toMatchObject({
      code: 2,
      err: expect.stringContaining('keys.json holds no list of people.'),
    })
    expect(await signalbox('eva', ['evidence', 'export', id])).toMatchObject({ code: 7 })

    // A bundle shows what was approved; unapproved content cannot be slipped in.
    const { out: bundle } = await signalbox('olga', ['evidence', 'export', id, '--approved'])
    writeFileSync(join(home, 'bundle.jsonl'), bundle)
    const shown = await verify('bundle.jsonl')
    expect(shown).toMatchObject({
      code: 0,
      out: expect.stringMatching(/SHOWN {4}1 of 1 approvals: at go\n +\w+: ".+"\n +\S.* \{/),
    })
    writeFileSync(join(home, 'bundle.jsonl'), bundle.replace('"inputs":{', '"inputs":{"a":1,'))
    expect(await verify('bundle.jsonl')).toMatchObject({
      code: 5,
      err: expect.stringContaining('no record approves the content it shows'),
    })
  })

  it('its graph is changed by a patch: checked, proposed, approved on its digest by someone else, then run', async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
    const start = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
    const id = (await signalbox('olga', start)).out.trim()
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    writeFileSync(join(home, 'half.jsonl'), (await signalbox('olga', ['evidence', 'export', id])).out)
    const verify = (...more: string[]) =>
      signalbox('olga', ['evidence', 'verify', 'half.jsonl', '--keys', 'keys.json', ...more])
    expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining('NOT ENDED') })
    expect(await verify('--complete')).toMatchObject({ code: 5, err: expect.stringContaining('is incomplete') })
    // Nobody has approved yet.
    expect(await verify('--require-signatures')).toMatchObject({ code: 0 })
    const propose = (changes: unknown, ...more: string[]) =>
      signalbox(
        'olga',
        ['patch', 'propose', '--op', id, '-f', '-', '--reason', 'look twice', ...more],
        JSON.stringify(changes),
      )
    const third = { node_id: 'third', kind: 'task', executor: 'noop', depends_on: ['second'], idempotent: true }

    const broken = await propose(
      [
        { op: 'remove_node', node_id: 'second' },
        { op: 'remove_node', node_id: 'nobody' },
      ],
      '--dry-run',
    )
    expect(broken).toMatchObject({ code: 7, err: expect.stringContaining('patch_not_applicable/unsound') })
    expect(broken.err).toContain('/changes/1/node_id there is no node "nobody"')
    const dry = await propose([{ op: 'add_node', node: third }], '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: expect.stringContaining('+ add      third') })
    expect((await signalbox('olga', ['patch', 'list', '--op', id, '-o', 'id'])).out).toBe('')
    expect(await propose([{ op: 'add_node', node: third }])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    })

    const patch_id = (
      await propose({ base_revision: 1, changes: [{ op: 'add_node', node: third }] }, '--yes', '-o', 'id')
    ).out.trim()
    expect((await signalbox('eva', ['inbox'])).out).toMatch(
      new RegExp(`patch +${patch_id.slice(-6)} .* look twice .* may vote`),
    )
    expect((await signalbox('eva', ['inbox', '-o', 'id'])).out).toContain(patch_id)
    const shown = await signalbox('eva', ['patch', 'show', patch_id.slice(-8), '--op', id])
    expect(shown.out).toMatch(
      /^AWAITING_APPROVAL {3}patch .* by olga, on revision 1\n {2}look twice\n {2}\+ add {6}third/,
    )
    const digest = /digest (sha256:[0-9a-f]{64})/.exec(shown.out)?.[1] ?? ''
    const approve = (who: string, ...more: string[]) =>
      signalbox(who, ['patch', 'approve', patch_id, '--op', id, '--yes', ...more])
    expect(await approve('eva')).toMatchObject({ code: 2, err: expect.stringContaining('--digest') })
    expect(await approve('olga', '--digest', digest)).toMatchObject({ code: 7 })
    expect(await approve('eva', '--digest', `sha256:${'0'.repeat(64)}`)).toMatchObject({
      code: 7,
      err: expect.stringContaining('version_conflict/digest_moved'),
    })
    expect(await approve('eva', '--digest', digest)).toMatchObject({
      code: 0,
      out: expect.stringContaining('revision 2'),
    })
    const late = ['patch', 'reject', patch_id, '--op', id, '--comment', 'too late', '--yes']
    expect(await signalbox('eva', late)).toMatchObject({ code: 7, err: expect.stringContaining('patch_closed') })

    const intervene = (...more: string[]) =>
      signalbox('olga', ['op', 'intervene', 'third', '--op', id, '--reason', 'done by hand', '--yes', ...more])
    writeFileSync(join(home, 'outputs.json'), '{}')
    const marked = ['--type', 'mark_succeeded', '--note', 'done by hand', '--outputs', 'outputs.json']
    expect(await intervene(...marked)).toMatchObject({
      code: 7,
      err: expect.stringContaining('intervention_not_applicable'),
    })
    expect(await intervene('--type', 'skip', '--ticket', 'OPS-7')).toMatchObject({ code: 0 })
    const gate = json<{ digest: string }>(await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']))
    await signalbox('eva', ['gate', 'approve', 'go', '--op', id, '--yes', '--digest', gate.digest])
    const ended = await signalbox('olga', ['op', 'watch', id, '--strict'])
    expect(ended.out).toContain('patch.applied')
    expect(ended).toMatchObject({ code: 5, err: expect.stringContaining('with exceptions') })
  })

  it('a gate of an external check is answered by the machine that it names, with its key', async () => {
    await Promise.all([login('ada'), login('olga')])
    for (const words of [
      ['machine', 'create', 'checker', '--owner', 'olga'],
      ['user', 'grant', 'machine:checker', 'controller'],
    ])
      expect(await signalbox('ada', words)).toMatchObject({ code: 0 })
    const add = ['machine', 'key', 'add', 'checker', '--permissions', 'operation:read,signal:send', '--days', '30']
    const key = /sbk_\S+/.exec((await signalbox('ada', add)).out)?.[0] ?? ''
    const check = { service: 'machine:checker', timeout_s: 600 }
    const [gate] = intent.graph.gates
    const graph = { ...intent.graph, gates: [{ ...gate, policy: { check } }] }
    const id = await started(graph)
    await until(async () => (await signalbox('olga', ['gate', 'show', 'go', '--op', id])).out.includes('WAITING'), {
      what: 'the gate',
      timeout_ms: 30_000,
    })
    const passed = ['signal', id.slice(-8), '--check', 'passed', '--gate', 'go', '--summary', 'CHG-1042 is approved']
    expect(await signalbox('olga', passed)).toMatchObject({ code: 7, err: expect.stringContaining('signal:send') })
    const bot = (...words: string[]) => signalbox('none', words, '', { SIGNALBOX_TOKEN: key })
    const examined = await bot('doctor')
    expect(examined, examined.out).toMatchObject({
      ...{
        code: 0,
        out: expect.stringMatching(/credentials: .* key of a machine\.\n(.*\n)*.*session: a machine has none/),
      },
    })
    expect(await bot('signal', id)).toMatchObject({ code: 2, err: expect.stringContaining('--check') })
    expect(await bot(...passed, '--dry-run')).toMatchObject({
      code: 0,
      err: expect.stringContaining('would be accepted'),
    })
    expect(await bot(...passed)).toMatchObject({ code: 0, err: expect.stringContaining('Sent: ') })
    expect(await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])).toMatchObject({ code: 0 })
    expect(await bot(...passed)).toMatchObject({ code: 7, err: expect.stringContaining('refused') })
    writeFileSync(join(home, 'checked.jsonl'), (await signalbox('olga', ['evidence', 'export', id])).out)
    writeFileSync(join(home, 'keys.json'), (await signalbox('olga', ['evidence', 'keys'])).out)
    const verified = await signalbox('olga', ['evidence', 'verify', 'checked.jsonl', '--keys', 'keys.json'])
    expect(verified).toMatchObject({ code: 0, out: expect.stringMatching(/COUNTED/) })
  })

  it('a canceled one ends with its own exit code', async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', '-', '-o', 'id'], JSON.stringify(intent))
    const plan = json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
    const start = ['plan', 'start', plan.plan_id, '--yes', '--digest', plan.plan_hash, '-o', 'id']
    const id = (await signalbox('olga', start)).out.trim()
    const cancel = ['op', 'cancel', id, '--reason', 'no longer wanted']
    expect(await signalbox('olga', cancel)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await signalbox('olga', [...cancel, '--yes'])).toMatchObject({ code: 0 })
    expect(await signalbox('olga', ['op', 'wait', id])).toMatchObject({ code: 6 })
    expect(await signalbox('olga', ['op', 'pause', id, '--reason', 'late', '--yes'])).toMatchObject({ code: 7 })
  })

  it('is scheduled, runs by itself up to its gate, and is ended', async () => {
    const when = { every_s: 86_400 }
    writeFileSync(
      join(home, 'nightly.json'),
      JSON.stringify({ when, proceed: 'start', intent: { ...intent, title: 'nightly' } }),
    )
    const create = ['schedule', 'create', '-f', 'nightly.json']
    expect((await signalbox('olga', [...create, '--dry-run'])).out).toContain('upcoming')
    const id = (await signalbox('olga', [...create, '-o', 'id'])).out.trim()
    expect((await signalbox('olga', ['schedule', 'list'])).out).toMatch(/nightly +every 86400 s .* never +olga/)
    expect(await signalbox('olga', ['schedule', 'run', id.slice(-8)])).toMatchObject({ code: 0 })
    const shown = () => signalbox('olga', ['schedule', 'show', id, '-o', 'json']).then(json<ScheduleView>)
    await expect.poll(async () => (await shown()).runs[0]?.state, { timeout: 60_000 }).toBe('started')
    const { operation_id } = (await shown()).runs[0] as ScheduleView['runs'][number]
    const waits = await signalbox('olga', ['op', 'wait', String(operation_id), '--timeout', '60s'])
    expect(waits).toMatchObject({ code: 4, out: expect.stringContaining('gate go') })
    expect(await signalbox('olga', ['schedule', 'end', id])).toMatchObject({ code: 2 })
    expect((await signalbox('olga', ['schedule', 'end', id, '--yes'])).out).toContain('ENDED')
    await signalbox('olga', ['op', 'cancel', String(operation_id), '--yes', '--reason', 'a test'])
  })
})
