import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { locateTofu } from '../support/tofu.ts'
import { planOf } from './support/drift.ts'
import { type Site, startSite } from './support/site.ts'
import { locateGit } from './support/tools.ts'

/** Rolling back what a tool applied from a repository: by the commit that was in force, or the values before. */
let site: Site
let git: (...args: string[]) => string
const commit = (mark: string): string => {
  const text = `variable "size" {\n  type = number\n}\noutput "mark" {\n  value = "${mark} \${var.size}"\n}\n`
  writeFileSync(site.place('infra/main.tf'), text)
  git('commit', '-q', '-a', '-m', mark)
  return git('rev-parse', 'HEAD')
}
beforeAll(async () => {
  const [tofu, program] = [await locateTofu(createScreen()), await locateGit()]
  site = await startSite('web', 'opentofu', async (place) => {
    const work = place('infra')
    mkdirSync(work)
    git = (...args) =>
      execFileSync(program, ['-C', work, '-c', 'user.name=T', '-c', 'user.email=t@t', ...args], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: dirname(work), GIT_CONFIG_GLOBAL: '/dev/null' },
      }).trim()
    git('init', '-q', '-b', 'main')
    writeFileSync(place('infra/main.tf'), '')
    git('add', '-A')
    git('commit', '-q', '-m', 'empty')
    return {
      git: { program, repos: { infra: { url: `${work}/.git` } } },
      tofu: { program: tofu, sources: { web: { repo: 'infra', refs: ['main'], state: place('tfstate') } } },
    }
  })
}, 300_000)
afterAll(() => site?.stop())

type Request = { kind: string; change?: object; action?: object; retry_of: string; targets: object[] }
type Reply = { intents: { request: Request }[] }
const wayBack = async (operation_id: string, query = '') =>
  (await site.people.olga.get<Reply>(`/v1/operations/${operation_id}/rollback${query}`)).intents.map(
    ({ request }) => request,
  )
const refuses = (asked: Promise<unknown>, code: string, detail: RegExp, more: object = {}, status = 409) =>
  expect(asked).rejects.toMatchObject({ status, body: { code, detail: expect.stringMatching(detail), ...more } })
const why = { title: 'by hand', reason: 'a test' }
const mark = () => JSON.parse(readFileSync(site.place('tfstate/eu1.tfstate'), 'utf8')).outputs.mark.value

it('an operation that applied a commit is rolled back by the commit before, and one that set values by those before', async () => {
  const [one, two] = [commit('one'), commit('two')]
  git('tag', 'v1', one)
  const { ada, olga } = site.people
  const { resource_id } = (
    await ada.post<{ resource_id: string }>('/v1/resources?mode=record_only', {
      ...{ type_key: 'delivery.workspace', name: 'web-eu1', lifecycle_status: 'active' },
      desired_state: { source: 'web', workspace: 'eu1', variables: { size: 1 } },
    })
  ).body
  const targets = [{ resource_id }]
  const inForce = async () =>
    (await olga.get<{ observed_state: { commit: string } }>(`/v1/resources/${resource_id}`)).observed_state.commit
  const done = async (intent: object, source?: object) => {
    const operation_id = await site.start(intent)
    const gate = await site.asked(operation_id)
    if (source) expect(gate.subject.bound_outputs[0]?.value.source).toMatchObject(source)
    await refuses(wayBack(operation_id), 'operation_running', /has not ended/)
    await site.approve(operation_id, gate)
    await site.ends(operation_id)
    return operation_id
  }
  const apply = (ref: string) => ({
    ...{ kind: 'action', ...why, targets },
    action: { action_key: 'apply', parameters: { ref } },
  })
  const first = await done(apply('v1'), { ref: 'v1', commit: one })
  expect([await inForce(), mark()]).toEqual([one, 'one 1'])
  await refuses(wayBack(first), 'no_state_before', /No commit is known/)

  const second = await done(apply('main'), { ref: 'main', commit: two })
  expect([await inForce(), mark()]).toEqual([two, 'two 1'])
  await refuses(wayBack(first), 'changed_since', /changed later/, { operation_id: second })
  await refuses(wayBack(first, '?anyway=true'), 'no_state_before', /No commit is known/)
  await refuses(wayBack(second, '?resource_id=another'), 'target_not_found', /another/, {}, 422)
  const [back] = await wayBack(second)
  expect(back).toMatchObject({
    ...{ kind: 'action', retry_of: second, targets, title: 'Roll back: by hand' },
    action: { action_key: 'apply', parameters: { ref: one } },
  })

  // It is reviewed as any other: the gate shows the commit.
  const third = await done(back as Request, { ref: one, commit: one })
  expect([await inForce(), mark()]).toEqual([one, 'one 1'])
  await refuses(wayBack(second), 'nothing_changed', /back at their state/)
  expect(await wayBack(third)).toMatchObject([{ action: { parameters: { ref: two } } }])

  // Correcting drift keeps what is in force, although the branch is ahead.
  const runbook = { pack: 'delivery', procedure: 'correct_drift' }
  await done({ kind: 'runbook', ...why, targets, runbook }, { commit: one })
  expect(mark()).toBe('one 1')

  const sized = (size: number) => ({
    ...{ kind: 'change', ...why, targets },
    change: { op: 'update', desired_state_patch: { variables: { size } } },
  })
  const fourth = await done(sized(20))
  expect(mark()).toBe('two 20')
  const [values] = await wayBack(fourth)
  expect(values).toMatchObject({
    kind: 'change',
    change: { op: 'update', desired_state_patch: { variables: { size: 1 } } },
  })
  // A plan of the way back is stale once the target has changed: no later change is lost unseen.
  const stated = await olga.post<{ intent_id: string }>('/v1/intents', values as Request)
  const planned = `/v1/intents/${stated.body.intent_id}/plan-preview`
  const { body: plan } = await olga.post<{ plan_id: string; plan_hash: string }>(planned, {})
  const fifth = await done(sized(30))
  await refuses(
    olga.post(`/v1/plans/${plan.plan_id}/start`, { reviewed_plan_hash: plan.plan_hash }),
    'resource_version_moved',
    /has changed from version/,
  )
  await refuses(wayBack(fourth), 'changed_since', /changed later/, { operation_id: fifth })
  expect(await wayBack(fourth, '?anyway=true')).toMatchObject([
    { change: { desired_state_patch: { variables: { size: 1 } } } },
  ])
}, 400_000)

it('the shipped action previews each kind of source at the ref, and applies exactly that behind a gate', () => {
  const more = { cluster: 'eu1', namespace: 'shop', set: 'shop', playbook: 'site.yml', inventory: { hosts: {} } }
  for (const [type_key, preview, act] of [
    ['delivery.workspace', 'opentofu.preview', 'opentofu.apply'],
    ['delivery.object_set', 'kubernetes.preview', 'kubernetes.apply'],
    ['delivery.playbook', 'ansible.preview', 'ansible.run'],
  ] as const) {
    const { nodes, gates, leases } = planOf('apply', { ref: 'release/2' }, { type_key, ...more })
    expect(nodes).toMatchObject([
      { with: { job: preview, inputs: { source: 'files', ref: 'release/2' } } },
      {
        with: { job: act, inputs: { preview: { $from: 'nodes/plan.files-eu1/outputs/preview' } } },
        catalog: { observed_state_patch: { $from: 'nodes/apply.files-eu1/outputs/catalog' } },
      },
    ])
    expect(gates).toMatchObject([{ guards: ['apply.files-eu1'], policy: { key: 'entry' } }])
    expect(leases).toContainEqual({ resource_id: 'files-eu1', mode: 'exclusive' })
  }
})

it('drift is compared and corrected at the commit in force, by the credentials of the workspace', () => {
  const inputsOf = (...asked: Parameters<typeof planOf>) =>
    planOf(...asked).nodes.map((node) => (node.with as { inputs: object }).inputs)
  const bare = { source: 'files', workspace: 'eu1', variables: { text: 'hello' } }
  const known = { observed: { commit: 'a'.repeat(40) }, credentials: 'cloud' }
  for (const [key, kind] of [
    ['detect_drift', 'action'],
    ['correct_drift', 'runbook'],
  ] as const) {
    expect(inputsOf(key, {}, known, kind)[0]).toEqual({ ...bare, ref: 'a'.repeat(40), credentials: 'cloud' })
    // A member of no known value is left out: an agent refuses an empty one.
    expect(inputsOf(key, {}, {}, kind)[0]).toEqual(bare)
  }
  const listed = { var_files: ['env/eu1.tfvars'] }
  expect(inputsOf('detect_drift', {}, listed)[0]).toEqual({ ...bare, ...listed })
  expect(inputsOf('apply', {}, listed)).toMatchObject([listed, listed])
  expect(inputsOf('correct_drift', {}, known, 'runbook')[1]).toMatchObject({ credentials: 'cloud' })
  // Who reads the lock of a state, and removes it, needs the credentials of its backend.
  for (const inputs of inputsOf('force_unlock', { lock_id: 'a-lock' }, known))
    expect(inputs).toMatchObject({ source: 'files', workspace: 'eu1', credentials: 'cloud' })
  for (const inputs of inputsOf('force_unlock', { lock_id: 'a-lock' })) expect(inputs).not.toHaveProperty('credentials')
  expect(inputsOf('apply')).toEqual([bare, { ...bare, preview: { $from: 'nodes/plan.files-eu1/outputs/preview' } }])
})
