import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Person } from '../../apps/platform/demo/client.ts'
import type { PlanView } from '../../apps/shared/contracts/operations/plans.ts'
import { scratchFolder } from './servers.ts'
import { until } from './until.ts'

const STEPS = ['drain', 'move', 'verify', 'undrain']
/** Most hosts of one operation; the platform needs `MANY_SETTINGS` to plan them. */
export const MOST_HOSTS = 2500
const EACH = 100

const PACK = {
  format: 'signalbox/pack@1',
  pack: 'many',
  version: '1.0.0',
  title: 'Many hosts',
  owners: ['netops'],
  procedures: [
    {
      key: 'move',
      kind: 'action',
      title: 'Move many',
      match: { resource_type: 'infra.generic', action: 'move' },
      parameters: { type: 'object', additionalProperties: false },
      lease: { mode: 'exclusive', ancestors: 'shared' },
      gates: [{ policy: 'cutover', at: 'before_step', step: 'move' }],
      risk: { base: 5 },
      defaults: { executor: 'noop', idempotent: true, with: { delay_ms: 0 } },
      steps: STEPS.map((id, at) => ({ id, ...(at > 0 && { needs: [STEPS[at - 1]] }) })),
    },
    {
      ...{ key: 'look', kind: 'runbook', title: 'Look at racks', match: { when: 'true' } },
      lease: { mode: 'shared', ancestors: 'shared' },
      steps: [{ id: 'look', executor: 'noop' }],
    },
  ],
}

/** What a platform needs in its environment for `startMany`. */
export const manySettings = (): Record<string, string> => {
  const folder = scratchFolder()
  // YAML reads JSON.
  writeFileSync(join(folder, 'many.yaml'), JSON.stringify(PACK))
  return { OPERATIONS__PACKS__DIR: folder, OPERATIONS__LIMITS__PLAN_NODES: String(MOST_HOSTS * STEPS.length) }
}

let registered = 0
const nameOf = (n: number) => `many-${String(n + 1).padStart(4, '0')}`
const register = async (admin: Person, hosts: number): Promise<void> => {
  for (; registered < hosts; registered += EACH) {
    const items = Array.from({ length: EACH }, (_, i) => nameOf(registered + i)).map((name) => ({
      op: 'create',
      change: {
        ...{ resource_id: name, type_key: 'infra.generic', name, lifecycle_status: 'active' },
        desired_state: { provider: 'test', kind: 'rack' },
      },
    }))
    await admin.post('/v1/resources:bulk?mode=record_only', { items })
  }
}

/**
 * An operation of four steps on `hosts` hosts, a multiple of 100: the first step has ended on all, a gate holds the
 * others. The platform needs `manySettings`.
 */
export const startMany = async (people: { ada: Person; olga: Person; eva: Person }, hosts: number): Promise<string> => {
  await register(people.ada, hosts)
  const when = `target.name.startsWith('many-') && target.name <= '${nameOf(hosts - 1)}'`
  const intent = {
    ...{ kind: 'action', title: 'Move many', reason: 'a test', action: { action_key: 'move' } },
    targets: [{ selector: { type_key: 'infra.generic', when, limit: hosts } }],
    constraints: { max_parallel: 50 },
  }
  // Operations receives the hosts a little later than the catalog.
  const post = () => people.olga.post<{ intent_id: string }>('/v1/intents', intent)
  const { intent_id } = (await until(post, { what: 'the first of the hosts' })).body
  const all = async () => {
    const { body } = await people.olga.post<PlanView>(`/v1/intents/${intent_id}/plan-preview`, {})
    return body.counts.nodes === hosts * STEPS.length ? body : undefined
  }
  const plan = await until(all, { what: 'the plan of all hosts', every_ms: 500 })
  const { operation_id } = (
    await people.olga.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, {
      reviewed_plan_hash: plan.plan_hash,
    })
  ).body
  const last = async () => {
    const { progress } = await people.eva.get<{ progress: { done: number } }>(`/v1/operations/${operation_id}`)
    return progress.done >= hosts
  }
  await until(last, { what: 'the first step of all hosts', timeout_ms: 240_000, every_ms: 2000 })
  return operation_id
}
