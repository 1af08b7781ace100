import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Preview } from '../../apps/shared/contracts/client/preview.ts'
import { must } from '../operations/support/platform.ts'
import { type Lab, startLab } from './support/agent.ts'

/** No node carries out a preview that its gate did not show, however it came about: the claim compares them. */
let lab: Lab
beforeAll(async () => {
  lab = await startLab(['infra'])
  const out = lab.place('effects')
  const args = { type: 'array', items: { type: 'string' } }
  lab.startAgent({
    pools: ['infra'],
    uid: 1500,
    programs: {
      look: { path: lab.script('look', `echo "{\\"preview\\": \\"$2\\"}" > "$SIGNALBOX_OUTPUTS"`), args },
      act: { path: lab.script('act', `echo "$2" >> ${out}/"$3"`), args },
    },
  })
}, 90_000)
afterAll(() => lab.stop())

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const command = (program: string, ...args: unknown[]) => ({ job: 'command', inputs: { program, args } })
const job = (node_id: string, work: object, more: object = {}) => ({
  ...{ node_id, executor: 'external', pool: 'infra', with: work },
  ...more,
})
const look = (node_id: string, shown: string) =>
  job(node_id, command('look', shown), { outputs: { preview: '/preview' } })
const preview = (node_id: string) => ({ $from: `nodes/${node_id}/outputs/preview` })
const shownBy = ({ subject }: { subject: { bound_outputs: { value: unknown }[] } }) =>
  subject.bound_outputs.map(({ value }) => value)

it('an output that is corrected after its gate was used is shown before the next node uses it', async () => {
  const path = await lab.startGraph({
    nodes: [
      look('plan', 'old'),
      { node_id: 'first', executor: 'noop', with: {} },
      { node_id: 'later', executor: 'noop', with: {} },
      job('apply', command('act', preview('plan'), 'corrected'), { depends_on: ['plan', 'later'] }),
    ],
    gates: [
      { gate_id: 'go', policy, guards: ['first', 'apply'] },
      { gate_id: 'hold', policy, guards: ['later'] },
    ],
  })
  const seen = await lab.approve(path)
  expect(shownBy(seen)).toEqual(['old'])
  await lab.reaches(path, 'succeeded', 'first')
  const set = { type: 'set_output', node_id: 'plan', reason: 'a test', payload: { outputs: { preview: 'new' } } }
  must(await lab.p.as('olga').post(`${path}/interventions`, set), 201, 202)
  await lab.approve(path, 'hold')
  const again = await lab.waiting(path)
  expect([again.round, shownBy(again)]).toEqual([seen.round + 1, ['new']])
  expect(lab.linesOf('effects/corrected')).toEqual([])
  await lab.approve(path)
  await lab.reaches(path, 'succeeded', 'apply')
  expect(lab.linesOf('effects/corrected')).toEqual(['new'])
}, 90_000)

it('no person can state a preview: only its tool forecasts the changes', async () => {
  const path = await lab.startGraph({
    nodes: [look('plan', 'old'), job('apply', command('act', preview('plan'), 'stated'), { depends_on: ['plan'] })],
    gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
  })
  await lab.waiting(path)
  const stated: Preview = {
    ...{ format: 'signalbox/preview@1', binding: 'exact', tool: 'x', source_digest: 'x', changes: [], digest: 'x' },
    ...{ changes_count: 0, counts: {}, unknowns: 0, drift: 0, no_change: true },
  }
  for (const outputs of [{ preview: stated }, { preview: { deep: [stated] } }]) {
    const set = { type: 'set_output', node_id: 'plan', reason: 'a test', payload: { outputs } }
    const { body } = must(await lab.p.as('olga').post(`${path}/interventions`, set), 409)
    expect(body).toMatchObject({ code: 'intervention_not_applicable', hint: expect.stringContaining('Retry') })
  }
}, 90_000)

it('a patch that has a node carry out another preview is refused without a gate that shows it', async () => {
  const path = await lab.startGraph({
    nodes: [
      look('plan', 'shown'),
      look('other', 'unshown'),
      job('apply', command('act', preview('plan'), 'patched'), { depends_on: ['plan', 'other'] }),
    ],
    gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
  })
  await lab.waiting(path)
  const update = { op: 'update_node', node_id: 'apply', set: { with: command('act', preview('other'), 'patched') } }
  const { body: operation } = must(await lab.p.as('olga').get(path), 200)
  const propose = (...changes: object[]) =>
    lab.p.as('olga').post(`${path}/patches`, { base_revision: operation.plan_revision, reason: 'a test', changes })
  const { body: refused } = must(await propose(update), 422)
  expect(refused.violations).toMatchObject([{ code: 'preview_unshown', pointer: '/nodes/apply/with' }])

  const more = { op: 'add_gate', gate: { gate_id: 'more', policy, guards: ['apply'] } }
  const { body: patch } = must(await propose(update, more), 201)
  const vote = { reviewed_digest: patch.digest }
  must(await lab.p.as('eva').post(`${path}/patches/${patch.patch_id}/approve`, vote), 200, 202)
  expect(shownBy(await lab.approve(path, 'more'))).toEqual(['unshown'])
  await lab.approve(path)
  await lab.reaches(path, 'succeeded', 'apply')
  expect(lab.linesOf('effects/patched')).toEqual(['unshown'])
}, 90_000)
