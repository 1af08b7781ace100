import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { recordLibrary } from '../../apps/operations/packs/record.ts'
import { PackError } from '../../apps/operations/packs/source.ts'
import { loadPlanPolicies } from '../../apps/operations/policies/plans.ts'
import { GraphGate } from '../../apps/shared/contracts/operations/intents.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'
import { createDb } from '../../db/client.ts'
import { packs } from '../../db/operations/tables/index.ts'
import { testDatabase } from '../support/database.ts'

type Json = Record<string, unknown>
const execute = promisify(execFile)
const README = new URL('../../apps/operations/policies/README.md', import.meta.url)

/** A sound pack; each case breaks one part of it. */
const sound = () => ({
  format: 'signalbox/pack@1',
  pack: 'probe',
  version: '1.0.0',
  title: 'Probe',
  owners: ['netops'],
  procedures: [
    {
      key: 'move',
      kind: 'change',
      title: 'Move',
      match: { resource_type: 'probe.thing', op: 'update', paths: ['/release'] } as Json,
      parameters: {
        type: 'object',
        properties: { desired_state_patch: { type: 'object' }, pause_s: { type: 'integer' } },
        additionalProperties: false,
      } as Json,
      batch: { by: 'scope/region_id', canary: 1, size: 2 } as Json,
      gates: [{ policy: 'cutover', at: 'after_canary' }] as Json[],
      defaults: {
        executor: 'http',
        secrets: { token: 'secret://file/probe#1' },
        with: { base_url: 'http://h' },
      } as Json,
      steps: [
        {
          id: 'one',
          with: { request: { method: 'POST', url: '/x', body: { $from: 'params/pause_s' } } },
          outputs: { id: '/body/id' },
        },
        {
          id: 'two',
          needs: ['one'],
          with: { request: { method: 'GET', url: { $join: ['/y/', { $from: 'nodes/one/outputs/id' }] } } },
          when: 'nodes.one.outputs.id != target.name',
        },
      ] as Json[],
    },
  ] as Json[],
})
type Pack = ReturnType<typeof sound>
const procedure = (pack: Pack) =>
  pack.procedures[0] as ReturnType<typeof sound>['procedures'][0] & Record<string, never>
const step = (pack: Pack, i: number) => (procedure(pack) as unknown as { steps: Json[] }).steps[i] as Json

const folderWith = (files: Record<string, string>): string => {
  const folder = mkdtempSync(join(tmpdir(), 'packs-'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}
/** The first fault, with the whole message. */
const faultOf = (load: () => unknown) => {
  try {
    load()
  } catch (error) {
    if (error instanceof PackError && error.found[0]) return { ...error.found[0], message: error.message }
    throw error
  }
  throw new Error('was accepted')
}
const packFault = (text: string) => faultOf(() => loadLibrary({ packs_dirs: [folderWith({ 'probe.yaml': text })] }))
const P = '/procedures/0'

describe('the shipped packs', () => {
  it('load with their procedures, policies and digests', () => {
    const { packs: loaded, policies } = loadLibrary()
    expect(loaded.map((pack) => `${pack.pack}: ${pack.procedures.map(({ key }) => key).join()}`)).toEqual([
      'delivery: detect_drift,correct_drift,force_unlock,apply,apply_set,apply_playbook',
      'fleet: release,restart,rotate_certificate',
      'infra: realise,rollout',
    ])
    expect([...policies.keys()].sort()).toEqual(['cutover', 'entry'])
    expect(loaded.every(({ digest }) => digest.startsWith('sha256:'))).toBe(true)
  })

  it("load beside a site's packs", () => {
    const { packs: loaded } = loadLibrary({ packs_dirs: [folderWith({ 'probe.yaml': stringify(sound()) })] })
    expect(loaded.map(({ pack }) => pack)).toEqual(['delivery', 'fleet', 'infra', 'probe'])
  })

  it('load beside packs with names of outputs and secrets that earlier versions took', () => {
    const old = sound()
    Object.assign(step(old, 0), {
      outputs: { id: '/body/id', vmId: '/body/id', 'exit-code': '/status' },
      secrets: { token: 'secret://file/probe#1', dbPass: 'secret://file/probe#2' },
    })
    const { packs: loaded } = loadLibrary({ packs_dirs: [folderWith({ 'probe.yaml': stringify(old) })] })
    const [first] = loaded.find(({ pack }) => pack === 'probe')?.procedures[0]?.steps ?? []
    expect(Object.keys(first?.outputs ?? {})).toEqual(['id', 'vmId', 'exit-code'])
  })
})

describe("a site's policies of planning", () => {
  const fault = (text: string, file = 'hard.cedar') => {
    try {
      loadPlanPolicies(folderWith({ [file]: text }))
    } catch (error) {
      return (error as Error).message
    }
    throw new Error('was accepted')
  }
  const on = '(principal, action == Action::"plan.execute", resource is Plan)'

  it('are refused, by file and policy, if they permit, are of another action, look at the requester, or do not match', () => {
    expect(fault(`@id("a") permit ${on};`)).toMatch(/hard\.cedar: a permits/)
    expect(fault(`@id("a") forbid (principal, action == Action::"plan.start", resource);`)).toMatch(
      /not of the one action/,
    )
    expect(fault(`@id("a") forbid (principal, action, resource);`)).toMatch(/not of the one action/)
    expect(fault(`@id("a") forbid ${on} unless { principal.groups.contains("x") };`)).toMatch(/uses groups/)
    expect(fault(`@id("a") forbid ${on} when { resource.colour == "red" };`)).toMatch(/does not match the schema/)
    expect(fault(`forbid ${on};`)).toMatch(/no @id/)
    expect(fault(`@id("critical_risk") forbid ${on};`)).toMatch(/same @id/)
    expect(fault(`@id("a") @approvers("netops") forbid ${on};`)).toMatch(/only a soft policy/)
    expect(fault(`@id("a") @approvers("Net Ops") forbid ${on};`, 'soft.cedar')).toMatch(/no groups/)
  })
})

it('packs:check reads packs, calendars and policies of a site, and names the first fault in one line', async () => {
  const check = (policy_dir: string) =>
    execute(process.execPath, [new URL('../../apps/platform/check/packs-check.ts', import.meta.url).pathname], {
      env: { ...process.env, OPERATIONS__POLICY__DIR: policy_dir },
    }).then(
      ({ stdout }) => stdout,
      ({ code, stderr }: { code: number; stderr: string }) => `${code} ${stderr}`,
    )
  const examples = [...readFileSync(README, 'utf8').matchAll(/```(?:cedar|yaml)\n([\s\S]*?)```/g)]
  const [cedar = '', soft = '', yaml = ''] = examples.map(([, text]) => text ?? '')
  const site = { 'hard.cedar': cedar, 'soft.cedar': soft, 'calendar/site.yaml': yaml }
  expect(await check(folderWith(site))).toMatch(/the policies have no faults/)
  expect(await check(folderWith({ 'hard.cedar': cedar.replace('forbid', 'permit') }))).toMatch(
    /^1 [^\n]*hard\.cedar: no_databases_in_prod permits[^\n]*\n$/,
  )
}, 60_000)

describe('a rule that one file breaks names the file, the pointer and the reason', () => {
  const cases: [string, (pack: Pack) => void, string, RegExp][] = [
    [
      'another format',
      (p) => {
        p.format = 'other'
      },
      '/format',
      /./,
    ],
    [
      'a catalog write of what runs once per plan',
      (p) => {
        Reflect.deleteProperty(procedure(p), 'batch')
        Object.assign(procedure(p), { kind: 'runbook', scope: 'plan', match: {}, gates: [] })
        Object.assign(procedure(p), { defaults: {}, steps: [{ id: 'one', executor: 'noop', catalog: {} }] })
      },
      `${P}/steps/0/catalog`,
      /no resource to write/,
    ],
    [
      'a read that is no read',
      (p) => {
        Object.assign(procedure(p), {
          read: { with: { request: { method: 'PUT', url: '/x' } }, expect: { '/body': 1 } },
        })
      },
      `${P}/read`,
      /must only read/,
    ],
    [
      'a read that waits',
      (p) => {
        const poll = { request: { method: 'GET', url: '/x' }, until: 'true', interval_s: 1, timeout_s: 9 }
        const call = { request: { method: 'GET', url: '/x' }, poll }
        Object.assign(procedure(p), { read: { with: call, expect: { '/body': 1 } } })
      },
      `${P}/read/with/poll`,
      /without a poll/,
    ],
    [
      'a read that compares with what is not known before',
      (p) => {
        const expect = { '/body': { $from: 'nodes/one/outputs/id' } }
        Object.assign(procedure(p), { read: { with: { request: { method: 'GET', url: '/x' } }, expect } })
      },
      `${P}/read/expect/~1body/$from`,
      /does not come before/,
    ],
    [
      'a read with a secret that its step does not have',
      (p) => {
        const call = { request: { method: 'GET', url: '/x', body: { $secret: 'other' } } }
        Object.assign(procedure(p), { read: { with: call, expect: { '/body': 1 } } })
      },
      `${P}/read/with/request/body/$secret`,
      /no secret "other"/,
    ],
    [
      'a read that compares nothing',
      (p) => {
        Object.assign(procedure(p), { read: { with: { request: { method: 'GET', url: '/x' } }, expect: {} } })
      },
      `${P}/read/expect`,
      /./,
    ],
    [
      'an unknown key',
      (p) => {
        ;(p as Json).colour = 1
      },
      '/colour',
      /not a known member/,
    ],
    [
      'no version',
      (p) => {
        Reflect.deleteProperty(p, 'version')
      },
      '/version',
      /required/,
    ],
    [
      'a version that is none',
      (p) => {
        p.version = '1.0'
      },
      '/version',
      /pattern/,
    ],
    [
      'a kind that is none',
      (p) => {
        ;(procedure(p) as Json).kind = 'dance'
      },
      `${P}/kind`,
      /change, action, runbook/,
    ],
    [
      'two procedures of one key',
      (p) => {
        p.procedures.push(structuredClone(p.procedures[0] as Json))
      },
      '/procedures/1/key',
      /defined twice/,
    ],
    [
      'a change without type',
      (p) => {
        Reflect.deleteProperty((procedure(p) as Json).match as Json, 'resource_type')
      },
      `${P}/match/resource_type`,
      /must name the type/,
    ],
    [
      'a change without op',
      (p) => {
        Reflect.deleteProperty((procedure(p) as Json).match as Json, 'op')
      },
      `${P}/match/op`,
      /must name its op/,
    ],
    [
      'a condition that does not compile',
      (p) => {
        ;((procedure(p) as Json).match as Json).when = 'target.'
      },
      `${P}/match/when`,
      /./,
    ],
    [
      'a condition over what it cannot see',
      (p) => {
        ;((procedure(p) as Json).match as Json).when = 'params.x == 1'
      },
      `${P}/match/when`,
      /Unknown variable: params/,
    ],
    [
      'matches',
      (p) => {
        ;((procedure(p) as Json).match as Json).when = 'target.name.matches("a")'
      },
      `${P}/match/when`,
      /"matches" is not available/,
    ],
    [
      'parameters that are no schema',
      (p) => {
        ;((procedure(p) as Json).parameters as Json).type = 'thing'
      },
      `${P}/parameters`,
      /JSON Schema/,
    ],
    [
      'a pattern that is not linear',
      (p) => {
        ;(procedure(p) as Json).parameters = {
          type: 'object',
          properties: { a: { type: 'string', pattern: '(?=x)y' } },
        }
      },
      `${P}/parameters`,
      /JSON Schema/,
    ],
    [
      'outputs_schema that is no schema',
      (p) => {
        step(p, 0).outputs_schema = { type: 7 }
      },
      `${P}/steps/0/outputs_schema`,
      /JSON Schema/,
    ],
    [
      'a policy that is not there',
      (p) => {
        ;(procedure(p) as Json).gates = [{ policy: 'nobody', at: 'entry' }]
      },
      `${P}/gates/0/policy`,
      /no gate policy "nobody"/,
    ],
    [
      'after_canary without canary',
      (p) => {
        ;((procedure(p) as Json).batch as Json).canary = 0
      },
      `${P}/gates/0/at`,
      /no canary/,
    ],
    [
      'before_step without such a step',
      (p) => {
        ;(procedure(p) as Json).gates = [{ policy: 'entry', at: 'before_step', step: 'nine' }]
      },
      `${P}/gates/0/step`,
      /must name one of the steps/,
    ],
    [
      'two steps of one id',
      (p) => {
        step(p, 1).id = 'one'
      },
      `${P}/steps/1/id`,
      /defined twice/,
    ],
    [
      'the reserved id',
      (p) => {
        step(p, 1).id = 'barrier'
      },
      `${P}/steps/1/id`,
      /closes a batch/,
    ],
    [
      'a need that is not there',
      (p) => {
        step(p, 1).needs = ['nine']
      },
      `${P}/steps/1/needs/0`,
      /no step "nine"/,
    ],
    [
      'a cycle',
      (p) => {
        step(p, 0).needs = ['two']
      },
      `${P}/steps/0/needs`,
      /depends on itself/,
    ],
    [
      'no executor',
      (p) => {
        Reflect.deleteProperty((procedure(p) as Json).defaults as Json, 'executor')
      },
      `${P}/steps/0/executor`,
      /names no executor/,
    ],
    [
      'an executor that is not there',
      (p) => {
        step(p, 0).executor = 'magic'
      },
      `${P}/steps/0/executor`,
      /no executor "magic"/,
    ],
    [
      'a member that the executor does not have',
      (p) => {
        ;(step(p, 0).with as Json).colour = 1
      },
      `${P}/steps/0/with/colour`,
      /not a member/,
    ],
    [
      'a required member that is missing',
      (p) => {
        step(p, 0).with = {}
      },
      `${P}/steps/0/with/request`,
      /required/,
    ],
    [
      'a condition of the executor',
      (p) => {
        ;(step(p, 0).with as Json).expect = 'target.x'
      },
      `${P}/steps/0/with/expect`,
      /over response/,
    ],
    [
      'longer than the executor runs',
      (p) =>
        void Object.assign(step(p, 0), {
          executor: 'noop',
          with: { base_url: null, delay_ms: 1 },
          timeouts: { run_s: 700 },
        }),
      `${P}/steps/0/timeouts/run_s`,
      /at most 600 s/,
    ],
    [
      'a poll longer than the step',
      (p) => {
        ;(step(p, 0).with as Json).poll = {
          request: { method: 'GET', url: '/' },
          until: 'true',
          interval_s: 1,
          timeout_s: 90,
        }
      },
      `${P}/steps/0/with/poll/timeout_s`,
      /longer than the step/,
    ],
    [
      'an unknown root',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $from: 'world/x' } }
      },
      `${P}/steps/0/with/headers/x/$from`,
      /unknown root/,
    ],
    [
      'an unknown parameter',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $from: 'params/y' } }
      },
      `${P}/steps/0/with/headers/x/$from`,
      /no parameter "y"/,
    ],
    [
      'an unknown member of the target',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $from: 'target/colour' } }
      },
      `${P}/steps/0/with/headers/x/$from`,
      /no member "colour"/,
    ],
    [
      'an output of a later step',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $from: 'nodes/two/outputs/id' } }
      },
      `${P}/steps/0/with/headers/x/$from`,
      /does not come before/,
    ],
    [
      'an output that is not declared',
      (p) => {
        ;(step(p, 1).with as Json).headers = { x: { $from: 'nodes/one/outputs/nine' } }
      },
      `${P}/steps/1/with/headers/x/$from`,
      /declares no output "nine"/,
    ],
    [
      'more of a step than its outputs',
      (p) => {
        ;(step(p, 1).with as Json).headers = { x: { $from: 'nodes/one/state' } }
      },
      `${P}/steps/1/with/headers/x/$from`,
      /only outputs/,
    ],
    [
      'a form with company',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $from: 'target/name', y: 1 } }
      },
      `${P}/steps/0/with/headers/x`,
      /only member/,
    ],
    [
      'a join of something else',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $join: [1] } }
      },
      `${P}/steps/0/with/headers/x`,
      /part of "\$join"/,
    ],
    [
      'a secret that is not declared',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $secret: 'nine' } }
      },
      `${P}/steps/0/with/headers/x/$secret`,
      /no secret "nine"/,
    ],
    [
      'a secret that is a value',
      (p) => {
        ;((procedure(p) as Json).defaults as Json).secrets = { token: 'hunter2' }
      },
      `${P}/steps/0/secrets/token`,
      /secret:\/\/provider/,
    ],
    [
      'when over a step that is not before',
      (p) => {
        step(p, 0).when = 'nodes.two.outputs.id == "x"'
      },
      `${P}/steps/0/when`,
      /does not come before/,
    ],
    [
      'include_if over outputs',
      (p) => {
        step(p, 1).include_if = 'nodes.one.outputs.id == "x"'
      },
      `${P}/steps/1/include_if`,
      /Unknown variable: nodes/,
    ],
    [
      'an expression with an unknown parameter',
      (p) => {
        ;(step(p, 0).with as Json).headers = { x: { $cel: 'params.nine' } }
      },
      `${P}/steps/0/with/headers/x/$cel`,
      /no parameter "nine"/,
    ],
    [
      'after, in an action',
      (p) =>
        void Object.assign(procedure(p), {
          kind: 'action',
          match: { resource_type: 'probe.thing', action: 'go' },
          steps: [{ id: 'one', with: { request: { method: 'GET', url: { $from: 'after/url' } } } }],
        }),
      `${P}/steps/0/with/request/url/$from`,
      /needs a change/,
    ],
    [
      'a member that no target has, of each target',
      (p) => {
        Reflect.deleteProperty(procedure(p), 'batch')
        Object.assign(procedure(p), { kind: 'runbook', scope: 'plan', match: {}, gates: [], defaults: {} })
        const hosts = { $each: { key: 'target/name', value: { port: { $from: 'target/desired/port' } } } }
        Object.assign(procedure(p), { steps: [{ id: 'one', executor: 'noop', with: { outputs: { hosts } } }] })
      },
      `${P}/steps/0/with/outputs/hosts/$each/value/port/$from`,
      /a target has no member "desired"/,
    ],
    [
      'batches, once per plan',
      (p) => {
        ;(procedure(p) as Json).scope = 'plan'
      },
      `${P}/batch`,
      /no batches/,
    ],
  ]
  it.each(cases)('%s', (_, spoil, pointer, reason) => {
    const pack = sound()
    spoil(pack)
    const fault = packFault(stringify(pack))
    expect(fault.place).toMatch(/probe\.yaml:\d+:\d+$/)
    expect(fault.pointer).toBe(pointer)
    expect(fault.reason).toMatch(reason)
    expect(fault.message).toContain('probe.yaml')
  })

  it('text that is not YAML, with its line', () => {
    expect(packFault('format: [\n  a: b\n').message).toMatch(/probe\.yaml:\d+/)
    expect(packFault('a: 1\na: 2\n').message).toMatch(/probe\.yaml:2/)
    expect(packFault('a: 1\n---\nb: 2\n').message).toContain('exactly one YAML document')
    expect(packFault('a: !!binary aGk=\n').message).toMatch(/probe\.yaml/)
  })

  it('one version of a pack in two files', () => {
    const text = stringify(sound())
    const packs_dirs = [folderWith({ 'a.yaml': text, 'b.yaml': text })]
    expect(faultOf(() => loadLibrary({ packs_dirs })).message).toContain('probe@1.0.0 at /version: two files')
  })

  it.each([
    ['deadline_s', (s: number) => ({ deadline_s: s })],
    ['the time of a service', (s: number) => ({ check: { service: 'change-advisory', timeout_s: s } })],
    ['after_s of a file', (s: number) => ({ escalation: [{ after_s: s, add_groups: ['netops'] }] })],
  ])('%s is at least a second, in the policy of a site and in that of a graph', (name, policy) => {
    const load = (s: number) => {
      const file = { format: 'signalbox/gate-policy@1', key: 'site', version: 1, question: 'Go?', ...policy(s) }
      return loadLibrary({ policy_dir: folderWith({ 'gates/x.yaml': stringify(file) }) })
    }
    expect([...load(1).policies.keys()]).toContain('site')
    expect(faultOf(() => load(0)).reason).toMatch(/at least 1|>= 1/)
    if (name.endsWith('of a file')) return
    const inGraph = compileSchema(GraphGate)
    const gate = (s: number) => ({ gate_id: 'go', policy: policy(s), guards: ['a'] })
    expect(inGraph(gate(1))).toEqual([])
    expect(inGraph(gate(0))).not.toEqual([])
  })

  it('gate policies and calendars likewise', () => {
    const policy = { format: 'signalbox/gate-policy@1', key: 'site', version: 1, question: 'Go?' }
    const load = (file: string, content: unknown) =>
      faultOf(() => loadLibrary({ policy_dir: folderWith({ [file]: stringify(content) }) }))
    expect(load('gates/x.yaml', { ...policy, applies: 'plan.' })).toMatchObject({ pointer: '/applies' })
    expect(load('gates/x.yaml', { ...policy, applies: 'target.x' }).reason).toContain('Unknown variable: target')
    expect(load('gates/x.yaml', { ...policy, approvals: { quorum: 0 } })).toMatchObject({
      pointer: '/approvals/quorum',
    })
    const check = { service: 'change-advisory', timeout_s: 600 }
    expect(load('gates/x.yaml', { ...policy, check, approvals: { quorum: 1 } })).toMatchObject({ pointer: '/check' })
    expect(load('gates/x.yaml', { ...policy, check: { service: 'x' } }).pointer).toContain('/check')
    expect(load('gates/x.yaml', { ...policy, key: 'entry' })).toMatchObject({ pointer: '/key' })
    for (const question of ['\u200b', '\u202eGo?', 'Go\non?'])
      expect(load('gates/x.yaml', { ...policy, question })).toMatchObject({ pointer: '/question' })
    // As YAML folds a text.
    const folded = stringify({ ...policy, question: 'Go?\n' })
    expect(loadLibrary({ policy_dir: folderWith({ 'gates/x.yaml': folded }) }).policies.get('site')).toBeTruthy()
    const window = {
      window_id: 'night',
      applies: 'true',
      timezone: 'Mars/Olympus',
      days: ['mon'],
      from: '22:00',
      to: '04:00',
    }
    expect(load('calendar/x.yaml', { format: 'signalbox/calendar@1', windows: [window] })).toMatchObject({
      pointer: '/windows/0/timezone',
    })
    const freeze = {
      freeze_id: 'xmas',
      title: 'X',
      applies: 'true',
      from: '2026-12-24T00:00:00Z',
      to: '2026-12-23T00:00:00Z',
      approvers: ['netops'],
    }
    expect(load('calendar/x.yaml', { format: 'signalbox/calendar@1', freezes: [freeze] })).toMatchObject({
      pointer: '/freezes/0/to',
    })
  })
})

describe('the record of packs', () => {
  let database: Awaited<ReturnType<typeof testDatabase>>
  let connection: ReturnType<typeof createDb>
  beforeAll(async () => {
    database = await testDatabase('operations')
    connection = createDb(database.url, { app: 'test' })
  })
  afterAll(async () => {
    await connection.close()
    await database.drop()
  })

  it('stores each version once, and refuses a version with different content', async () => {
    const load = (title: string, version = '1.0.0') =>
      loadLibrary({ packs_dirs: [folderWith({ 'probe.yaml': stringify({ ...sound(), title, version }) })] })
    await recordLibrary(connection.db, load('Probe'))
    await recordLibrary(connection.db, load('Probe'))
    await expect(recordLibrary(connection.db, load('Changed'))).rejects.toThrow(
      /probe@1\.0\.0 at \/version: pack_version_reused/,
    )
    await recordLibrary(connection.db, load('Changed', '1.0.1'))
    const known = await connection.db.select({ pack: packs.pack, version: packs.version }).from(packs)
    expect(
      known
        .filter(({ pack }) => pack === 'probe')
        .map(({ version }) => version)
        .sort(),
    ).toEqual(['1.0.0', '1.0.1'])
  })
})
