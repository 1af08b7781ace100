import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { digest } from '../../apps/shared/data/digest.ts'
import { locateTofu } from '../support/tofu.ts'
import { type Lab, startLab } from './support/agent.ts'
import { refused } from './support/refusal.ts'

/** One module for several environments: where its state is, files of variables, and how many changes run at once. */
let lab: Lab
const WIDE = '9007199254740993'
const WIDER = '9007199254740994'
const MODULE = `
terraform {
  backend "local" {}
}
variable "size" {
  type = number
}
variable "name" {
  type = string
}
variable "wide" {
  type    = number
  default = 0
}
resource "terraform_data" "disk" {
  count = 3
  input = "\${var.name} \${var.size}"
  provisioner "local-exec" {
    command = "echo begin >> STEPS; sleep 0.3; echo end >> STEPS"
  }
}
resource "terraform_data" "wide" {
  input = { number = var.wide }
}
output "wide" {
  value = var.wide
}
`
beforeAll(async () => {
  const program = await locateTofu(createScreen())
  lab = await startLab(['infra'])
  const web = lab.place('web')
  mkdirSync(join(web, 'env'))
  writeFileSync(join(web, 'main.tf'), MODULE.replaceAll('STEPS', join(lab.place('steps'), 'steps')))
  writeFileSync(join(web, 'env/eu1.tfvars'), 'size = 5\nname = "eu1"\n')
  writeFileSync(join(web, 'env/eu1.txt'), 'size = 5\n')
  const backend = { path: `${lab.place('states')}/*.tfstate` }
  const fixed = { path: `${lab.place('states')}/fixed.tfstate` }
  const spaces = { path: `${lab.folder}/default.tfstate`, workspace_dir: lab.place('spaces') }
  const of = (backend: object) => ({ path: web, backend })
  const sources = { web: of(backend), fixed: of(fixed), spaces: of(spaces) }
  const path = lab.script('count', `echo '{"wide": ${WIDER}}' > "$SIGNALBOX_OUTPUTS"`)
  const region = join(lab.folder, 'region')
  writeFileSync(region, 'masked')
  const env = { AWS_REGION: { file: region } }
  const credentials = { cloud: { jobs: ['opentofu.preview', 'opentofu.apply'], env } }
  const programs = { count: { path, args: {} } }
  lab.startAgent({ ...{ pools: ['infra'], uid: 0, programs, credentials }, tofu: { program, sources } })
}, 300_000)
afterAll(() => lab.stop(), 120_000)

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const state = (name: string) => join(lab.folder, `states/${name}.tfstate`)
type Bound = { subject: { bound_outputs: { value: { place: unknown; changes: unknown } }[] } }
const boundOf = ({ subject: { bound_outputs } }: Bound) => {
  const [bound] = bound_outputs
  if (!bound) throw new Error('the gate shows no preview')
  return bound.value
}
const change = (inputs: object, more: object = inputs) => ({
  nodes: [
    {
      ...{ node_id: 'plan', executor: 'external', pool: 'infra', outputs: { preview: '/preview' } },
      with: { job: 'opentofu.preview', inputs: { source: 'web', ...inputs } },
    },
    {
      ...{ node_id: 'apply', executor: 'external', pool: 'infra', depends_on: ['plan'] },
      with: {
        job: 'opentofu.apply',
        inputs: { source: 'web', ...more, preview: { $from: 'nodes/plan/outputs/preview' } },
      },
      outputs: { outputs: '/outputs', catalog: '/catalog' },
    },
  ],
  gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
})

it('the state is where the step says, variables count above their files, and no integer loses a digit', async () => {
  const inputs = {
    backend: { path: state('eu1') },
    var_files: ['env/eu1.tfvars'],
    variables: { size: 7, wide: WIDE },
    parallelism: 1,
  }
  const path = await lab.startGraph(change(inputs))
  const gate = await lab.approve(path)
  const { place, changes } = boundOf(gate)
  const where = { source: 'web', workspace: 'default', backend: { path: state('eu1') } }
  expect(place).toEqual({ ...where, digest: digest(where) })
  expect(changes).toContainEqual(
    expect.objectContaining({
      id: 'terraform_data.wide',
      fields: expect.arrayContaining([{ path: '/input/number', after: WIDE }]),
    }),
  )
  const { outputs } = await lab.reaches(path, 'succeeded', 'apply')
  expect(outputs).toMatchObject({
    outputs: { wide: WIDE },
    catalog: { outputs: [{ name: 'wide', value: WIDE }], resources_count: 2 },
  })
  const { resources } = JSON.parse(readFileSync(state('eu1'), 'utf8')) as { resources: object[] }
  expect(JSON.stringify(resources)).toContain('"value":"eu1 7"')
  expect(readFileSync(state('eu1'), 'utf8')).toMatch(new RegExp(`"number": ${WIDE}\\b`))
  // One at a time, as the approved plan says.
  expect(lab.linesOf('steps/steps').join(' ')).toBe('begin end begin end begin end')

  // A plan whose only change is the last digit, which a program counted, shows it.
  const { nodes, gates } = change({ ...inputs, variables: { size: 7, wide: { $from: 'nodes/count/outputs/wide' } } })
  const count = {
    ...{ node_id: 'count', executor: 'external', pool: 'infra', outputs: { wide: '/wide' } },
    with: { job: 'command', inputs: { program: 'count', args: [] } },
  }
  const [plan, apply] = nodes
  const next = await lab.startGraph({ nodes: [count, { ...plan, depends_on: ['count'] }, apply], gates })
  expect(boundOf(await lab.approve(next)).changes).toContainEqual(
    expect.objectContaining({
      fields: expect.arrayContaining([{ path: '/input/number', before: WIDE, after: WIDER }]),
    }),
  )
  await lab.reaches(next, 'succeeded', 'apply')
  expect(readFileSync(state('eu1'), 'utf8')).toMatch(new RegExp(`"number": ${WIDER}\\b`))
  const drift = {
    ...{ node_id: 'drift', executor: 'external', pool: 'infra', outputs: { drift: '/drift' } },
    with: { job: 'opentofu.drift', inputs: { source: 'web', ...inputs, variables: { size: 7, wide: WIDER } } },
  }
  const found = await lab.reaches(await lab.start(drift), 'succeeded', 'drift')
  expect(found.outputs.drift).toMatchObject({ status: 'in_sync' })
}, 200_000)

it('only a preview makes a workspace: another job names one that does not exist, and the backend stays as it is', async () => {
  const inputs = { source: 'spaces', variables: { size: 1, name: 'eu2' } }
  const made = () => readdirSync(join(lab.folder, 'spaces'))
  const workspace = 'nope'
  for (const job of ['opentofu.drift', 'opentofu.lock']) {
    const node = {
      node_id: 'look',
      executor: 'external',
      pool: 'infra',
      with: { job, inputs: { ...inputs, workspace } },
    }
    const words = `The backend has no workspace "${workspace}", or it cannot be read`
    await refused(lab, await lab.start({ ...node, retry: { max_attempts: 1 } }), 'look', 'tool_failed', words)
  }
  expect(made()).toEqual([])
  const path = await lab.startGraph(change({ ...inputs, workspace: 'made' }))
  await lab.approve(path)
  await lab.reaches(path, 'succeeded', 'apply')
  expect(made()).toEqual(['made'])
}, 200_000)

it('a setting that the agent does not allow, or a file that the source does not have, is refused before any program', async () => {
  const fits = { backend: { path: state('us1') }, variables: { size: 1, name: 'us1' } }
  const other = { path: '/tmp/elsewhere.tfstate' }
  for (const [more, words] of [
    [{ backend: other }, `allows no "path" = "${other.path}" for the backend of "web"`],
    [{ backend: { path: state('../web/x') } }, 'allows no "path"'],
    [{ backend: { workspace_dir: '/tmp' } }, 'allows no "workspace_dir"'],
    [{ backend: { path: { a: 1 } } }, 'allows no "path"'],
    [{ source: 'fixed' }, 'allows no "path"'],
    [{ var_files: ['../web/env/eu1.tfvars'] }, 'The source has no file "../web/env/eu1.tfvars"'],
    [{ var_files: ['env/none.tfvars'] }, 'The source has no file "env/none.tfvars"'],
    [{ var_files: ['env/eu1.txt'] }, 'The source has no file "env/eu1.txt"'],
  ] as const)
    await refused(lab, await lab.startGraph(change({ ...fits, ...more })), 'plan', 'agent_refused', words)
  expect(readdirSync(join(lab.folder, 'states'))).not.toContain('us1.tfstate')
}, 200_000)

it('an apply that names another state than its preview is refused, and neither state changes', async () => {
  const variables = { size: 1, name: 'ap1' }
  const [one, two] = ['ap1', 'ap2'].map((name) => ({ backend: { path: state(name) }, variables }))
  const path = await lab.startGraph(change(one ?? {}, two))
  await lab.approve(path)
  await refused(lab, path, 'apply', 'agent_refused', 'made for another source, workspace or backend')
  expect(readdirSync(join(lab.folder, 'states')).filter((name) => name.startsWith('ap'))).toEqual([])
}, 100_000)

it('a state whose place has a text of the credential is shown masked, and the approved plan reaches it', async () => {
  const path = state('masked-1')
  const inputs = { backend: { path }, variables: { size: 1, name: 'one' }, credentials: 'cloud' }
  const started = await lab.startGraph(change(inputs))
  const { place } = boundOf(await lab.approve(started))
  expect(place).toMatchObject({ backend: { path: path.replace('masked', '•••') } })
  await lab.reaches(started, 'succeeded', 'apply')
  expect(readdirSync(join(lab.folder, 'states'))).toContain('masked-1.tfstate')
}, 100_000)

it('what the agent sets itself needs no word of the step, and no reader sees it', async () => {
  // An input of null is none, as in the plan.
  const none = { workspace: null, backend: null, var_files: null, parallelism: null, credentials: null }
  const inputs = { source: 'fixed', variables: { size: 1, name: 'fixed' }, ...none }
  const path = await lab.startGraph(change(inputs, { ...inputs, backend: { path: null } }))
  expect(boundOf(await lab.approve(path)).place).toHaveProperty('backend', {})
  await lab.reaches(path, 'succeeded', 'apply')
  expect(readdirSync(join(lab.folder, 'states'))).toContain('fixed.tfstate')
}, 100_000)
