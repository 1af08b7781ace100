import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRecount } from '../../apps/shared/contracts/client/recount.ts'
import { verifyEvidence } from '../../apps/shared/evidence/verify.ts'
import type { EvidenceRecord } from '../../db/operations/tables/evidence.ts'
import { must } from '../operations/support/platform.ts'
import { siteFolder } from '../support/site.ts'
import { until } from '../support/until.ts'
import { type Lab, startLab } from './support/agent.ts'
import { refused } from './support/refusal.ts'

/** The platform's demands on every preview, of any tool. */
let lab: Lab
let site: string
const HARD = `@id("no_database_is_deleted")
@detail("A preview must not delete a database.")
forbid (principal, action == Action::"plan.execute", resource is Plan)
when { resource has preview &&
  (resource.preview.kinds.contains("delete aws_db_instance") || !resource.preview.complete) };`
const QUICK = `
format: signalbox/gate-policy@1
key: quick
version: 1
question: Continue?
approvals: { groups: [{ group: netops, min: 1 }] }
on_timeout: approve
`
const SOFT = `@id("two_for_deletions")
@detail("A deletion needs two approvals, one of them of the leads.")
@approvers("netops-leads")
@quorum("2")
forbid (principal, action == Action::"plan.execute", resource is Plan)
when { resource has preview && resource.preview.delete + resource.preview.replace > 0 };`
beforeAll(async () => {
  site = siteFolder({ 'hard.cedar': HARD, 'soft.cedar': SOFT, 'gates/quick.yaml': QUICK })
  lab = await startLab(['infra'], { env: { OPERATIONS__POLICY__DIR: site } })
  const args = { type: 'array', items: { type: 'string' } }
  const programs = {
    act: { path: lab.script('act', `echo did >> ${lab.place('effects')}/"$2"`), args },
    foresee: { path: lab.script('foresee', `cp ${lab.place('previews')}/"$2" "$SIGNALBOX_OUTPUTS"`), args },
  }
  lab.startAgent({ pools: ['infra'], uid: 1500, programs })
}, 90_000)
afterAll(async () => {
  await lab.stop()
  rmSync(site, { recursive: true })
})

const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
/** A change whose preview an agent brings; `null` has no gate that shows it. */
const change = (name: string, shown: object, more: object = {}, asked: object | string | null = policy) => {
  const at = 'within' in shown ? '/within/preview' : '/preview'
  writeFileSync(join(lab.folder, 'previews', name), JSON.stringify('within' in shown ? shown : { preview: shown }))
  const external = { executor: 'external', pool: 'infra' }
  const foresee = { job: 'command', inputs: { program: 'foresee', args: [name] } }
  const inputs = { program: 'act', args: [name], preview: { $from: 'nodes/plan/outputs/preview' } }
  return {
    nodes: [
      { ...external, node_id: 'plan', with: foresee, outputs: { preview: at } },
      { ...external, node_id: 'apply', depends_on: ['plan'], with: { job: 'command', inputs, ...more } },
    ],
    gates: asked ? [{ gate_id: 'go', policy: asked, guards: ['apply'] }] : [],
  }
}
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
])(
  'a preview older than the step allows (%s) begins no work, and its retry asks again',
  async (_, more, age, words) => {
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
  },
  90_000,
)

it('a step cannot allow a preview of more than a week', async () => {
  const answer = await lab.p
    .as('olga')
    .post('/v1/intents', {
      ...{ kind: 'graph', title: 'too old', reason: 'a test', graph: change('week', {}, { max_age_s: 604_801 }) },
    })
  expect(JSON.stringify(answer.body)).toContain('max_age_s')
})

const saw = (...changes: string[]) => {
  const counts: Record<string, number> = {}
  const all = changes.map((text) => {
    const [action = '', id = ''] = text.split(' ')
    counts[action] = (counts[action] ?? 0) + 1
    return { id, action, fields: [] }
  })
  return {
    ...{
      format: 'signalbox/preview@1',
      binding: 'exact',
      tool: '1.11.4',
      source_digest: 'sha256:0',
      digest: 'sha256:0',
    },
    ...{ changes: all, changes_count: all.length, counts, unknowns: 0, drift: 0, no_change: all.length === 0 },
  }
}
const foreseen = (name: string, shown: object, asked?: object | string | null) =>
  lab.startGraph(change(name, shown, {}, asked))
const votes = async (path: string, who: 'eva' | 'ada') => {
  const { digest, round } = await lab.waiting(path)
  must(await lab.p.as(who).post(`${path}/gates/go/approve`, { reviewed_digest: digest, round }), 200, 202)
}

it('a hard policy fails a preview by its kinds, and by changes that it does not show', async () => {
  const path = await foreseen('hard', saw('delete module.a["b]c"].aws_db_instance.main', 'update aws_instance.web'))
  const words = /^A preview must not delete a database\. \(policy no_database_is_deleted\) No change was made/
  await refused(lab, path, 'plan', 'policy_denied', words)
  const cut = await foreseen('cut', { ...saw('update aws_instance.web'), changes_count: 2 })
  await refused(lab, cut, 'plan', 'policy_denied', words)
  const unlisted = await foreseen('unlisted', { ...saw('update aws_a.b'), kinds: ['delete aws_db_instance'] })
  await refused(lab, unlisted, 'plan', 'policy_denied', words)
  const deep = await foreseen('deep', { within: { preview: saw('delete aws_db_instance.main') } })
  await refused(lab, deep, 'plan', 'policy_denied', words)
  expect([...effects('hard'), ...effects('deep')]).toEqual([])
  const counted = await lab.p.deps.telemetry.metrics.metrics()
  expect(counted).toMatch(/signalbox_agent_attempts_total\{.*pool="infra",result="failed".*\} [4-9]/)
}, 60_000)

it('a soft policy raises the gate that shows the preview: one approval no longer passes it', async () => {
  const path = await foreseen('soft', saw('replace aws_instance.web'), 'quick')
  const gate = await lab.waiting(path)
  expect(gate.question).toContain('A deletion needs two approvals')
  expect(gate.policy).toMatchObject({ quorum: 2, on_timeout: 'reject' })
  expect(gate.subject.policy.digest).toBe(gate.policy.digest)
  await votes(path, 'eva')
  expect((await lab.waiting(path)).status).toBe('waiting')
  expect(effects('soft')).toEqual([])
  await votes(path, 'ada')
  await lab.reaches(path, 'succeeded', 'apply')
  expect(effects('soft')).toEqual(['did'])
}, 60_000)

it('the evidence of a raised gate says why, and its recount counts by the raised rules', async () => {
  const groups = [{ group: 'netops', min: 1 }]
  const path = await foreseen('counted', saw('delete aws_instance.web'), { approvals: { quorum: 2, groups } })
  await votes(path, 'eva')
  await votes(path, 'ada')
  await lab.reaches(path, 'succeeded', 'apply')
  await until(async () => must(await lab.p.as('vic').get(path), 200).body.status === 'succeeded')
  const file = must(await lab.p.as('aud').get(`${path}/evidence?format=jsonl`), 200).text
  const { keys } = must(await lab.p.as('vic').get('/v1/evidence/keys'), 200).body
  expect(verifyEvidence(Buffer.from(file), keys)).toMatchObject({ counted: true, decisions: 1, starts: 1 })
  const records: EvidenceRecord[] = must(await lab.p.as('vic').get(`${path}/evidence?limit=1000`), 200).body.records
  expect(records.find(({ kind }) => kind === 'policy_result')).toMatchObject({
    statement: 'Gate go asks for more: the preview is forbidden by two_for_deletions',
    subject: { type: 'gate', id: 'go', rules: [{ quorum: 2, groups: [...groups, { group: 'netops-leads', min: 1 }] }] },
  })
  const recount = createRecount()
  const without = records.filter(({ kind, actor }) => kind !== 'vote' || actor.name !== 'ada')
  expect(without.flatMap((record) => recount.take({ ...record }) ?? [])).toEqual([
    expect.stringContaining('approved by 1 of 2 votes'),
    expect.stringContaining('which no earlier record approves'),
  ])
}, 60_000)

it('a soft policy fails a preview that no gate shows; a harmless preview asks as planned', async () => {
  const path = await foreseen('bare', saw('delete aws_instance.web'), null)
  await refused(lab, path, 'plan', 'policy_denied', /two approvals.* No gate shows this preview\. Plan again/)
  expect(effects('bare')).toEqual([])
  const calm = await foreseen('calm', saw('update aws_instance.web'))
  await votes(calm, 'eva')
  await lab.reaches(calm, 'succeeded', 'apply')
}, 60_000)
