import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { run } from '../../apps/platform/servers/sources.ts'
import { must } from '../operations/support/platform.ts'
import { locateTofu } from '../support/tofu.ts'
import { until } from '../support/until.ts'
import { type Agent, type Lab, startLab } from './support/agent.ts'
import { planOf } from './support/drift.ts'
import { alter, forgeAs, forged, forgery, forging, refused } from './support/refusal.ts'
import { startStateServer } from './support/state-server.ts'

/**
 * States that someone else holds, and plan files that are not the approved ones: the real tool changes none of them.
 */
let lab: Lab
let program: string
let server: Awaited<ReturnType<typeof startStateServer>>
let refusing: typeof server
let agent: Agent
const holders: ChildProcess[] = []
const MODULE = `
variable "size" {
  type = number
}
resource "terraform_data" "disk" {
  input = var.size
}
`
beforeAll(async () => {
  program = await locateTofu(createScreen())
  server = await startStateServer()
  refusing = await startStateServer()
  lab = await startLab(['infra'])
  const state = lab.place('tfstate')
  const sources = { web: { path: lab.place('web'), state }, remote: { path: lab.place('remote') } }
  Object.assign(sources, { refusing: { path: lab.place('refusing') } })
  writeFileSync(join(lab.folder, 'web/main.tf'), MODULE)
  writeFileSync(join(lab.folder, 'remote/main.tf'), `${MODULE}${remote()}`)
  agent = lab.startAgent({ pools: ['infra'], uid: 0, programs: forgery(lab), tofu: { program, sources } })
}, 300_000)
afterAll(async () => {
  for (const { pid } of holders) killGroup(pid)
  server.stop()
  refusing.stop()
  await lab.stop()
})
const remote = ({ url } = server) => `terraform {
  backend "http" {
    address        = "${url}"
    lock_address   = "${url}"
    unlock_address = "${url}"
  }
}
`
const killGroup = (pid: number | undefined) => {
  try {
    process.kill(-Number(pid), 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Another process whose apply runs until it is killed, and so holds the state. */
const hold = async (name: string, backend: string) => {
  const cwd = lab.place(name)
  const begun = join(lab.folder, `${name}.begun`)
  const slow = `provisioner "local-exec" {\n    command = "echo begun > ${begun}; sleep 300"\n  }`
  writeFileSync(join(cwd, 'main.tf'), `${backend}resource "terraform_data" "slow" {\n  ${slow}\n}\n`)
  await run(program, ['init', '-no-color', '-input=false'], { cwd, timeout_ms: 60_000 })
  const args = ['apply', '-auto-approve', '-no-color', '-input=false']
  const child = spawn(program, args, { cwd, detached: true, stdio: 'ignore' })
  holders.push(child)
  await until(() => existsSync(begun), { what: `${name} holds the state` })
  return async () => {
    killGroup(child.pid)
    await once(child, 'exit')
  }
}

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const node = (node_id: string, job: string, inputs: object, outputs: string[], depends_on: string[] = []) => ({
  ...{ node_id, executor: 'external', pool: 'infra', with: { job, inputs }, depends_on },
  outputs: Object.fromEntries(outputs.map((name) => [name, `/${name}`])),
})
const preview = { $from: 'nodes/plan/outputs/preview' }
const change = (source: string, workspace: string, more: object = {}) => ({
  nodes: [
    node('plan', 'opentofu.preview', { source, workspace, variables: { size: 1 } }, ['preview']),
    node('apply', 'opentofu.apply', { source, workspace, lock_wait_s: 1, preview, ...more }, ['serial'], ['plan']),
  ],
  gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
})
const retry = async (path: string, id: string) =>
  must(await lab.p.as('olga').post(`${path}/nodes/${id}/retry`, { scope: 'node', reason: 'again' }), 200, 202)

it("a state locked by another process is not touched, and the lock's holder and time are named; once freed, the plan applies", async () => {
  const file = join(lab.folder, 'tfstate/eu1.tfstate')
  const path = await lab.startGraph(change('web', 'eu1'))
  await lab.waiting(path)
  const release = await hold('holder', `terraform {\n  backend "local" {\n    path = "${file}"\n  }\n}\n`)
  await lab.approve(path)
  const words =
    /^The state is locked by \S+@\S+ since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(lock [0-9a-f-]{36}\)\. No change was made\. Retry when/
  await refused(lab, path, 'apply', 'locked', words)
  expect(readFileSync(file, 'utf8')).toBe('')
  await release()
  await retry(path, 'apply')
  await lab.reaches(path, 'succeeded', 'apply')
  expect(JSON.parse(readFileSync(file, 'utf8')).resources).toHaveLength(1)
}, 180_000)

it('a lock left by a killed apply is removed only by its id, after a gate that shows its holder', async () => {
  const path = await lab.startGraph(change('remote', 'default'))
  await lab.waiting(path)
  const kill = await hold('killed', remote())
  await kill()
  const lock_id = server.lock()?.ID ?? ''
  await lab.approve(path)
  const failed = await lab.reaches(path, 'failed', 'apply')
  expect(failed).toMatchObject({
    error_class: 'locked',
    error_message: expect.stringContaining(`The state is locked (lock ${lock_id}). No change was made.`),
  })

  const inputs = { source: 'remote', workspace: 'default' }
  const shown = { $from: 'nodes/look/outputs/preview' }
  const unlock = (id: string) => ({
    nodes: [
      node('look', 'opentofu.lock', inputs, ['preview']),
      node('job', 'opentofu.unlock', { ...inputs, lock_id: id, preview: shown }, ['unlocked'], ['look']),
    ],
    gates: [{ gate_id: 'go', policy, guards: ['job'] }],
  })
  const other = '604fe33c-043c-997f-e138-3fdd8ac6c402'
  const wrong = await lab.startGraph(unlock(other))
  await lab.approve(wrong)
  const different = new RegExp(`lock ${lock_id}.*The lock ${other} is a different one.*No lock was`)
  await refused(lab, wrong, 'job', 'conflict', different)
  expect(server.lock()?.ID).toBe(lock_id)
  const option = await lab.start(node('job', 'opentofu.unlock', { ...inputs, lock_id: '-force' }, ['unlocked']))
  expect(await lab.reaches(option, 'failed')).toMatchObject({ error_class: 'agent_refused' })

  const right = await lab.startGraph(unlock(lock_id))
  const gate = await lab.approve(right)
  expect(gate.subject.bound_outputs[0].value).toMatchObject({
    binding: 'checked',
    changes: [{ id: `lock ${lock_id}`, action: 'delete', fields: [{ path: '/id', before: lock_id }] }],
  })
  expect((await lab.reaches(right, 'succeeded')).outputs).toEqual({ unlocked: true })
  expect(server.lock()).toBeUndefined()
  const again = await lab.start(node('job', 'opentofu.unlock', { ...inputs, lock_id }, ['unlocked']))
  expect((await lab.reaches(again, 'succeeded')).outputs).toEqual({ unlocked: false })
  await retry(path, 'apply')
  await lab.reaches(path, 'succeeded', 'apply')
  expect(JSON.parse(server.state() ?? '').resources).toHaveLength(1)
}, 240_000)

it('a plan file with another digest than the approved one is not carried out, and neither are altered bytes', async () => {
  const differs = 'a different digest than the approved one. No change was made.'
  for (const [name, more, words] of [
    ['altered', { plan: { content_sha256: 'f'.repeat(64) } }, differs],
    // The right plan, under a picture that shows none of its changes.
    [
      'hidden',
      { changes: [], counts: {} },
      /^The saved plan does not open: .*not the one that was made\. No change was made\./,
    ],
  ] as const) {
    const other = await lab.startGraph({
      nodes: [
        node('plan', 'opentofu.preview', { source: 'web', workspace: 'us1', variables: { size: 1 } }, ['preview']),
        forging(name, ['plan']),
        node('apply', 'opentofu.apply', { source: 'web', workspace: 'us1', preview: forged }, ['serial'], ['forged']),
      ],
    })
    const made = (await lab.reaches(other, 'succeeded', 'plan')).outputs.preview
    forgeAs(lab, name, { ...made, ...more, plan: { ...made.plan, ...('plan' in more && more.plan) } })
    await refused(lab, other, 'apply', 'agent_refused', words)
  }

  const path = await lab.startGraph(change('web', 'us1'))
  await lab.waiting(path)
  const { sha256 } = (await lab.nodeOf(path, 'plan')).outputs.preview.plan
  alter(lab, sha256)
  await lab.approve(path)
  await refused(
    lab,
    path,
    'apply',
    'agent_error',
    /^The artifact \S+ (cannot be fetched|has different).*No change was made/,
  )
  expect(existsSync(join(lab.folder, 'tfstate/us1.tfstate'))).toBe(false)
}, 180_000)

it('an apply that is done says so, although its state cannot be read afterwards', async () => {
  const [, apply] = change('remote', 'default').nodes
  const path = await lab.startGraph({
    nodes: [node('plan', 'opentofu.preview', { source: 'remote', variables: { size: 77 } }, ['preview']), apply],
  })
  server.loseAfterWrite()
  const failed = await lab.reaches(path, 'failed', 'apply')
  expect(failed).toMatchObject({ error_class: 'partial' })
  expect(failed.error_message).toMatch(/^1 of 1 begun changes are done: .*could not be read afterwards/)
  expect(failed.error_message).not.toContain('No change was made')
  expect(server.state()).toContain('77')
}, 120_000)

it('a state that cannot be written is kept on the machine, whatever its file is, and although the attempt is closed', async () => {
  const module = (name: string, command: string) => {
    const resource = `provisioner "local-exec" {\n    command = "${command}"\n  }`
    const text = `${remote(refusing)}resource "terraform_data" "${name}" {\n  ${resource}\n}\n`
    writeFileSync(join(lab.folder, 'refusing/main.tf'), text)
    return change('refusing', 'default')
  }
  const kept = (path: string, name: string) => {
    const folder = join(lab.folder, 'state/unsaved')
    const [file = ''] = readdirSync(folder).filter((one) => one.startsWith(`${path.split('/').at(-1)}-apply-`))
    expect(readFileSync(join(folder, file), 'utf8')).toContain(`"${name}"`)
    return join(folder, file)
  }
  // A file with two names is not uploaded.
  for (const [name, command] of [
    ['plain', 'true'],
    ['twice', 'touch other; ln other errored.tfstate'],
  ] as const) {
    refusing.refuseWrites(async () => {})
    const path = await lab.startGraph({ nodes: module(name, command).nodes })
    const { error_class, error_message } = await lab.reaches(path, 'outcome_unknown', 'apply')
    expect(error_class).toBe('unsaved_state')
    expect(error_message).toContain(`it is ${kept(path, name)} on the agent's machine. Push it before`)
  }
  const path = await lab.startGraph(module('closed', 'true'))
  const close = `update operations.executions set closed_at = clock_timestamp() where operation_id = $1`
  refusing.refuseWrites(async () => void (await lab.p.query(close, [path.split('/').at(-1)])))
  await lab.approve(path)
  await until(() => agent.said().includes('apply: unknown, but'), { what: 'the end of the apply' })
  expect(agent.said()).toContain(kept(path, 'closed'))
}, 180_000)

it('the shipped action removes the lock that is named, behind a gate that binds who holds it', () => {
  const { nodes, gates } = planOf('force_unlock', { lock_id: 'a-lock' })
  expect(gates).toMatchObject([
    { guards: ['unlock.files-eu1'], policy: { binds: ['nodes/look.files-eu1/outputs/preview'] } },
  ])
  expect(nodes.map(({ with: given }) => given)).toMatchObject([
    { job: 'opentofu.lock', inputs: { source: 'files', workspace: 'eu1' } },
    { job: 'opentofu.unlock', inputs: { source: 'files', workspace: 'eu1', lock_id: 'a-lock' } },
  ])
})
