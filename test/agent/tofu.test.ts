import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { canonicalJson } from '../../apps/shared/data/digest.ts'
import { verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import { locateTofu } from '../support/tofu.ts'
import { until } from '../support/until.ts'
import { type Agent, type Lab, startLab } from './support/agent.ts'
import { executedIn, exportOf, forgeAs, forged, forgery, forging, refused } from './support/refusal.ts'

/** The real tool behind a gate: the approved change runs, or nothing runs. */
let lab: Lab
let file: Record<string, unknown>
let agent: Agent
const PASSWORD = 'p4ssw0rd-in-the-plan'
const TOKEN = 'cred-0123456789'
const MODULE = `
variable "size" {
  type = number
}
variable "token" {
  type = string
}
variable "password" {
  type      = string
  sensitive = true
  default   = "${PASSWORD}"
}
resource "terraform_data" "disk" {
  input = { size = var.size, password = var.password, token = "by \${var.token}" }
}
output "size" {
  value = var.size
}
output "password" {
  value     = var.password
  sensitive = true
}
`
const LARGE = `
resource "terraform_data" "one" {
  input = 1
}
output "large" {
  value = join("", [for n in range(1000) : join("", [for m in range(30) : "0123456789"])])
}
output "small" {
  value = 5
}
`
const SLOW = `
resource "terraform_data" "quick" {
  input = 1
}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.quick]
  provisioner "local-exec" {
    command = "echo begun >> BEGUN; sleep 60; echo done >> BEGUN"
  }
}
`
const PAIR = (input: string) =>
  ['one', 'two'].map((name) => `resource "terraform_data" "${name}" {\n  input = "${input}"\n}\n`).join('')
const OLD = `
resource "terraform_data" "old" {}
resource "terraform_data" "left" {}
`
const MOVED = `
resource "terraform_data" "new" {}
resource "terraform_data" "there" {}
moved {
  from = terraform_data.old
  to   = terraform_data.new
}
import {
  to = terraform_data.there
  id = "an-id"
}
removed {
  from = terraform_data.left
  lifecycle {
    destroy = false
  }
}
`
beforeAll(async () => {
  const program = await locateTofu(createScreen())
  lab = await startLab(['infra'])
  const state = lab.place('tfstate')
  const sources = Object.fromEntries(
    ['web', 'large', 'slow', 'linked', 'out', 'pair'].map((name) => [name, { path: lab.place(name), state }]),
  )
  const moved = lab.place('moved')
  Object.assign(sources, { moved: { path: moved, state: moved } })
  writeFileSync(join(moved, 'main.tf'), OLD)
  writeFileSync(join(lab.folder, 'web/main.tf'), MODULE)
  writeFileSync(join(lab.folder, 'large/main.tf'), LARGE)
  writeFileSync(join(lab.folder, 'slow/main.tf'), SLOW.replaceAll('BEGUN', join(lab.folder, 'begun')))
  writeFileSync(join(lab.folder, 'linked/main.tf'), 'variable "size" {}\noutput "size" {\n  value = var.size\n}\n')
  for (const name of ['zz_signalbox.auto.tfvars.json', 'signalbox_override.tf.json'])
    symlinkSync('main.tf', join(lab.folder, 'linked', name))
  writeFileSync(join(lab.folder, 'pair/main.tf'), PAIR('first'))
  lab.place('out')
  writeFileSync(join(lab.folder, 'out/main.tf'), '')
  symlinkSync(join(lab.folder, 'linked'), join(lab.folder, 'out/linked'))
  const path = join(lab.folder, 'credential')
  writeFileSync(path, `${TOKEN}\n`)
  const cloud = { jobs: ['opentofu.preview'], env: { TF_VAR_token: { file: path } } }
  const programs = forgery(lab)
  file = { pools: ['infra'], uid: 0, programs, tofu: { program, sources, grace_s: 20 }, credentials: { cloud } }
  agent = lab.startAgent(file)
}, 300_000)
afterAll(() => lab.stop(), 120_000)

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
/** A preview, a gate that binds it, and the apply of exactly that preview. */
const change = (source: string, workspace: string, size: number, more: object = {}) => ({
  nodes: [
    {
      node_id: 'plan',
      executor: 'external',
      pool: 'infra',
      with: {
        job: 'opentofu.preview',
        inputs: { source, workspace, ...(source === 'web' && { variables: { size }, credentials: 'cloud' }) },
      },
      outputs: { preview: '/preview' },
    },
    {
      node_id: 'apply',
      executor: 'external',
      pool: 'infra',
      depends_on: ['plan'],
      with: { job: 'opentofu.apply', inputs: { source, workspace, preview: { $from: 'nodes/plan/outputs/preview' } } },
      outputs: { outputs: '/outputs', applied: '/applied', serial: '/serial' },
      ...more,
    },
  ],
  gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
})
type Resource = { name: string; instances: { attributes: { id: string; input: unknown } }[] }
const stateOf = (workspace: string, place = 'tfstate') => {
  const text = readFileSync(join(lab.folder, place, `${workspace}.tfstate`), 'utf8')
  return JSON.parse(text) as { serial: number; resources: Resource[] }
}
const boundOf = (gate: { subject: { bound_outputs: { value: Record<string, unknown> }[] } }) =>
  gate.subject.bound_outputs[0]?.value as Record<string, never>

it('the approved saved plan is applied, and none of its secrets appears outside', async () => {
  const path = await lab.startGraph(change('web', 'eu1', 10))
  const gate = await lab.approve(path)
  expect(boundOf(gate)).toMatchObject({
    binding: 'exact',
    base: { lineage: null, serial: 0 },
    counts: { create: 1 },
    changes: expect.arrayContaining([
      {
        id: 'terraform_data.disk',
        action: 'create',
        fields: expect.arrayContaining([
          { path: '/input/size', after: 10 },
          { path: '/input/password', sensitive: true },
          { path: '/input/token', after: 'by •••' },
          { path: '/id', unknown: true },
        ]),
      },
    ]),
  })
  const node = await lab.reaches(path, 'succeeded', 'apply')
  expect(node.outputs).toEqual({
    outputs: { size: 10 },
    applied: ['terraform_data.disk'],
    serial: stateOf('eu1').serial,
  })
  const { operation_id } = (await lab.p.as('vic').get(path)).body
  const rows = await lab.p.query<{ text: string }>(
    `select t::text as text from (
       select to_jsonb(n) t from operations.nodes n where operation_id = $1
       union all select to_jsonb(a) from operations.node_attempts a where operation_id = $1
       union all select to_jsonb(g) from operations.gates g where operation_id = $1) all_rows`,
    [operation_id],
  )
  const logs = await Promise.all(['plan', 'apply'].map((id) => lab.p.as('vic').get(`${path}/nodes/${id}/logs`)))
  const kept = readdirSync(lab.p.config.OPERATIONS__ARTIFACTS__DIR, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  expect(kept.length).toBeGreaterThan(0)
  const evidence = await exportOf(lab, path, 'Node apply succeeded (attempt 1)')
  const { plan } = boundOf(gate) as never as { plan: { content_sha256: string } }
  const { tool, tool_sha256 } = executedIn(evidence)[0] ?? {}
  expect(executedIn(evidence)).toMatchObject([
    {
      tool,
      tool_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      version: expect.stringMatching(/^\d+\.\d+/),
      exit: 2,
    },
    { tool, tool_sha256, version: expect.any(String), exit: 0, content_sha256: plan.content_sha256 },
  ])
  const { keys } = (await lab.p.as('aud').get('/v1/evidence/keys')).body
  const { digest: bound, subject } = (await lab.p.as('vic').get(`${path}/gates/go`)).body
  expect(bound).toBe(gate.digest)
  const bundle = Buffer.from(`${evidence}${canonicalJson({ approved: subject })}\n`)
  expect(verifyEvidence(bundle, keys)).toMatchObject({
    shown: [{ gate_id: 'go' }],
    executed: [{ id: 'plan' }, { id: 'apply' }],
  })
  for (const text of [...rows.map((row) => row.text), ...logs.map((log) => log.text), ...kept, evidence])
    for (const secret of [PASSWORD, TOKEN]) expect(text).not.toContain(secret)
}, 120_000)

it('if the state changed after the approval, no change is made, and the retry of the preview asks again', async () => {
  const first = await lab.startGraph(change('web', 'us1', 1))
  const second = await lab.startGraph(change('web', 'us1', 2))
  await until(async () => (await lab.nodeOf(second, 'plan')).state === 'succeeded', { timeout_ms: 60_000 })
  await lab.approve(first)
  await lab.reaches(first, 'succeeded', 'apply')
  const { serial } = stateOf('us1')
  const old = await lab.approve(second)
  const node = await refused(lab, second, 'apply', 'preview_stale', /differs from the one|serial/)
  expect(stateOf('us1').serial).toBe(serial)
  // The operation is held, and says what has changed.
  const held = await until(async () => {
    const { body } = await lab.p.as('vic').get(second)
    return body.status === 'blocked' ? body : undefined
  })
  expect(held.blocked_on).toMatchObject([
    { kind: 'failed_node', id: 'apply', message: expect.stringContaining(node.error_message) },
  ])
  const retried = await lab.p.as('olga').post(`${second}/nodes/plan/retry`, { scope: 'downstream', reason: 'stale' })
  expect([200, 202], retried.text).toContain(retried.status)
  const gate = await lab.approve(second)
  expect(gate.round).toBeGreaterThan(old.round)
  expect(gate.digest).not.toBe(old.digest)
  expect(boundOf(gate)).toMatchObject({ base: { serial }, counts: { update: 1 } })
  await lab.reaches(second, 'succeeded', 'apply')
}, 180_000)

it('a saved plan goes to an agent that has its key, however many others ask', async () => {
  const path = await lab.startGraph(change('web', 'keyed', 1))
  await lab.waiting(path)
  agent.child.kill('SIGSTOP')
  const other = lab.startAgent({ ...file, name: 'other', state_dir: lab.place('other-state') })
  await until(() => other.said().includes('Asking for work'), { what: 'the other agent' })
  await lab.approve(path)
  const asks = () => lab.asked().filter((one) => one.endsWith('/work')).length
  await until(async () => (await lab.nodeOf(path, 'apply')).state === 'running', { timeout_ms: 60_000 })
  const before = asks()
  await until(() => asks() > before + 1, { what: 'the other agent asking again' })
  expect((await lab.nodeOf(path, 'apply')).state).toBe('running')
  agent.child.kill('SIGCONT')
  await lab.reaches(path, 'succeeded', 'apply')
  expect(other.said()).not.toContain('apply:')
  other.child.kill('SIGKILL')
  await other.ended
}, 180_000)

it('files of the source that changed after the preview, and a preview that was altered, are refused', async () => {
  const path = await lab.startGraph(change('web', 'ap1', 1))
  await until(async () => (await lab.nodeOf(path, 'plan')).state === 'succeeded', { timeout_ms: 60_000 })
  // A preview that is made again while its gate waits is a new question.
  const asked = await lab.waiting(path)
  const retried = await lab.p.as('olga').post(`${path}/nodes/plan/retry`, { scope: 'downstream', reason: 'again' })
  expect([200, 202], retried.text).toContain(retried.status)
  const again = await until(async () => {
    const gate = await lab.waiting(path)
    return gate.round > asked.round ? gate : undefined
  })
  expect(again.digest).not.toBe(asked.digest)
  writeFileSync(join(lab.folder, 'web/extra.tf'), 'locals {}\n')
  await lab.approve(path)
  await refused(lab, path, 'apply', 'preview_stale', 'source files')

  const { preview } = (await lab.nodeOf(path, 'plan')).outputs
  const [, apply] = change('web', 'ap1', 1).nodes
  const inputs = { source: 'web', preview: forged }
  forgeAs(lab, 'foreign', preview)
  const other = await lab.startGraph({
    nodes: [forging('foreign'), { ...apply, depends_on: ['forged'], with: { job: 'opentofu.apply', inputs } }],
  })
  await refused(lab, other, 'apply', 'agent_error', 'cannot be fetched')
}, 120_000)

it('a plan of targets, with a replacement on request, says so at the gate and leaves the rest alone', async () => {
  const first = await lab.startGraph(change('pair', 'pair', 1))
  await lab.approve(first)
  await lab.reaches(first, 'succeeded', 'apply')
  const attributes = () => stateOf('pair').resources.map(({ instances: [one] }) => one?.attributes)
  const before = attributes()
  const asks = (more: object) => {
    const { nodes, gates } = change('pair', 'pair', 1)
    const [plan, apply] = nodes.map((one) => ({
      ...one,
      with: { ...one.with, inputs: { ...one.with.inputs, ...more } },
    }))
    return { nodes: [plan, apply], gates }
  }
  writeFileSync(join(lab.folder, 'pair/main.tf'), PAIR('second'))
  for (const [more, words, kind] of [
    [{ targets: ['terraform_data.three'] }, 'The plan has no resource "terraform_data.three"', 'tool_failed'],
    [{ replace: ['terraform_data.tw'] }, 'The plan has no resource "terraform_data.tw"', 'tool_failed'],
    [{ targets: ['-destroy'] }, '"targets" and "replace" must be lists', 'agent_refused'],
  ] as const)
    await refused(lab, await lab.startGraph(asks(more)), 'plan', kind, words)
  const path = await lab.startGraph(asks({ targets: ['terraform_data.one'], replace: ['terraform_data.one'] }))
  expect(boundOf(await lab.approve(path))).toMatchObject({
    targets: ['terraform_data.one'],
    changes: [{ id: 'terraform_data.one', action: 'replace', note: 'replaced on request' }],
  })
  await lab.reaches(path, 'succeeded', 'apply')
  const [one, two] = attributes()
  expect(one).toMatchObject({ input: { value: 'second' } })
  expect(one?.id).not.toBe(before[0]?.id)
  expect(two).toEqual(before[1])
}, 200_000)

it('an apply whose outputs are too large to be returned has succeeded, with the others', async () => {
  const path = await lab.startGraph(change('large', 'large', 1))
  await lab.approve(path)
  const node = await lab.reaches(path, 'succeeded', 'apply')
  expect(node.outputs).toMatchObject({ outputs: { small: 5 }, applied: ['terraform_data.one'] })
  expect(node.outputs.outputs).not.toHaveProperty('large')
}, 120_000)

it('a plan that only moves, imports or forgets shows it at the gate, and moved addresses are no drift', async () => {
  const main = join(lab.folder, 'moved/main.tf')
  await lab.approve(await lab.startGraph(change('moved', 'eu1', 1)))
  await until(() => stateOf('eu1', 'moved').resources.length > 1, { what: 'the first apply' })
  writeFileSync(main, MOVED)
  const drift = { ...change('moved', 'eu1', 1).nodes[0], node_id: 'drift', outputs: { drift: '/drift' } }
  Object.assign(drift, { with: { job: 'opentofu.drift', inputs: { source: 'moved', workspace: 'eu1' } } })
  const found = await lab.reaches(await lab.start(drift), 'succeeded', 'drift')
  expect(found.outputs.drift).toMatchObject({ status: 'in_sync', changes: 0 })
  const path = await lab.startGraph(change('moved', 'eu1', 1))
  expect(boundOf(await lab.approve(path))).toMatchObject({
    ...{ no_change: false, drift: 0, counts: { forget: 1, import: 1, move: 1 } },
    changes: [
      { id: 'terraform_data.left', action: 'forget' },
      { id: 'terraform_data.there', action: 'import', note: 'imports an-id' },
      { id: 'terraform_data.new', action: 'move', note: 'moved from terraform_data.old' },
    ],
  })
  await lab.reaches(path, 'succeeded', 'apply')
  expect(stateOf('eu1', 'moved').resources.map(({ name }) => name)).toEqual(['new', 'there'])
}, 200_000)

it('an interrupted apply reports its progress and leaves no lock', async () => {
  const path = await lab.startGraph(change('slow', 'eu1', 1, { timeouts: { run_s: 30, heartbeat_s: 5 } }))
  await lab.approve(path)
  await until(() => lab.linesOf('begun').length > 0, { what: 'the slow change' })
  const node = await lab.reaches(path, 'failed', 'apply')
  expect(node).toMatchObject({ error_class: 'timeout', error_message: expect.stringContaining('terraform_data.quick') })
  expect(lab.linesOf('begun')).toEqual(['begun'])
  expect(readdirSync(join(lab.folder, 'tfstate')).filter((name) => name.includes('lock'))).toEqual([])
  expect(stateOf('eu1').resources.length).toBeGreaterThan(0)
}, 120_000)

it('if an agent is killed during the apply, the outcome is unknown, the tool is gone, and no one repeats it', async () => {
  const before = lab.linesOf('begun').length
  const path = await lab.startGraph(change('slow', 'us1', 1, { timeouts: { run_s: 60, heartbeat_s: 5 } }))
  await lab.approve(path)
  await until(() => lab.linesOf('begun').length > before, { what: 'the slow change' })
  agent.child.kill('SIGKILL')
  await agent.ended
  agent = lab.startAgent(file)
  await lab.reaches(path, 'outcome_unknown', 'apply')
  expect(lab.linesOf('begun')).toHaveLength(before + 1)
}, 200_000)

it('a link in the source never takes the place of a file that the agent writes, and may not lead out', async () => {
  const main = join(lab.folder, 'linked/main.tf')
  const text = readFileSync(main, 'utf8')
  const [plan] = change('linked', 'eu5', 1).nodes as never as [{ with: { inputs: object } }]
  Object.assign(plan.with.inputs, { variables: { size: 'seven' } })
  const path = await lab.start(plan, { ...change('out', 'eu5', 1).nodes[0], node_id: 'out' })
  const { outputs } = await lab.reaches(path, 'succeeded', 'plan')
  expect(outputs.preview.changes).toContainEqual(
    expect.objectContaining({ id: 'output.size', fields: [{ path: '', after: 'seven' }] }),
  )
  expect(readFileSync(main, 'utf8')).toBe(text)
  expect((await lab.reaches(path, 'failed', 'out')).error_message).toMatch(/The link "linked" leads out of the source/)
}, 120_000)
