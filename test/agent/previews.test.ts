import { afterAll, beforeAll, expect, it } from 'vitest'
import { must } from '../operations/support/platform.ts'
import { type Lab, startLab } from './support/agent.ts'
import { refused } from './support/refusal.ts'

/** What the platform asks of every preview, whatever its tool. */
let lab: Lab
beforeAll(async () => {
  lab = await startLab(['infra'])
  const act = { path: lab.script('act', `echo did >> ${lab.place('effects')}/"$2"`) }
  const any = { type: 'array', items: { type: 'string' } }
  lab.startAgent({ pools: ['infra'], uid: 1500, programs: { act: { ...act, args: any } } })
}, 90_000)
afterAll(() => lab.stop())

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
const change = (name: string, shown: object, more: object = {}) => ({
  nodes: [
    { node_id: 'plan', executor: 'noop', with: { outputs: { preview: shown } }, outputs: { preview: '/preview' } },
    {
      ...{ node_id: 'apply', executor: 'external', pool: 'infra', depends_on: ['plan'] },
      with: {
        job: 'command',
        inputs: { program: 'act', args: [name], preview: { $from: 'nodes/plan/outputs/preview' } },
        ...more,
      },
    },
  ],
  gates: [{ gate_id: 'go', policy, guards: ['apply'] }],
})
const effects = (name: string) => lab.linesOf(`effects/${name}`)
const aged = (path: string, seconds: number) =>
  lab.p.query(
    `update operations.nodes set ended_at = ended_at - make_interval(secs => $2)
     where operation_id = $1 and node_id = 'plan'`,
    [path.split('/').at(-1), seconds],
  )

it.each([
  ['a day', {}, 86_395, '1441 min old, and this step allows 1440 min'],
  ['its own time', { max_age_s: 600 }, 595, '11 min old, and this step allows 10 min'],
])('a preview older than the step allows (%s) begins no work, and its retry asks again', async (_, more, age, words) => {
  const name = `age-${age}`
  const path = await lab.startGraph(change(name, {}, more))
  const first = await lab.waiting(path)
  await aged(path, age + 6)
  await lab.approve(path)
  await refused(lab, path, 'apply', 'preview_stale', words)
  expect(effects(name)).toEqual([])
  must(await lab.p.as('olga').post(`${path}/nodes/plan/retry`, { scope: 'downstream', reason: 'too old' }), 200, 202)
  const again = await lab.waiting(path)
  expect(again.round).toBe(first.round + 1)
  await aged(path, age - 60)
  await lab.approve(path)
  await lab.reaches(path, 'succeeded', 'apply')
  expect(effects(name)).toEqual(['did'])
}, 90_000)

it('a step cannot allow a preview of more than a week', async () => {
  const answer = await lab.p.as('olga').post('/v1/intents', {
    ...{ kind: 'graph', title: 'too old', reason: 'a test', graph: change('week', {}, { max_age_s: 604_801 }) },
  })
  expect(JSON.stringify(answer.body)).toContain('max_age_s')
})
