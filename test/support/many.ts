import type { Person } from '../../apps/platform/demo/client.ts'
import { startOperation } from '../../apps/platform/demo/operations.ts'
import { until } from './until.ts'

const STEPS = ['drain', 'move', 'verify', 'undrain']
const EACH = 100

/**
 * An operation of four steps on `hosts` hosts (at most 500): the first step has ended on all, a gate holds the others.
 */
export const startMany = async (people: { ada: Person; olga: Person; eva: Person }, hosts: number): Promise<string> => {
  const names = Array.from({ length: hosts }, (_, i) => `many-${String(i + 1).padStart(3, '0')}`)
  for (let from = 0; from < hosts; from += EACH) {
    const items = names
      .slice(from, from + EACH)
      .map((name) => ({
        op: 'create',
        change: {
          ...{ resource_id: name, type_key: 'infra.generic', name },
          desired_state: { provider: 'test', kind: 'rack' },
        },
      }))
    await people.ada.post('/v1/resources:bulk?mode=record_only', { items })
  }
  const node = (host: string, step: string, before: string | undefined) => ({
    ...{ node_id: `${step}.${host}`, name: `${step} ${host}`, kind: 'task', executor: 'noop', with: {} },
    ...{ idempotent: true, target_id: host, depends_on: before === undefined ? [] : [`${before}.${host}`] },
  })
  const policy = {
    approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true },
    deadline_s: 86_400,
  }
  const selector = { type_key: 'infra.generic', when: "target.name.startsWith('many-')", limit: hosts }
  const start = () =>
    startOperation(people.olga, 'Move many', {
      ...{ kind: 'graph', title: 'Move many', reason: 'a test', targets: [{ selector }] },
      graph: {
        nodes: names.flatMap((host) => STEPS.map((step, at) => node(host, step, STEPS[at - 1]))),
        gates: [{ gate_id: 'go', question: 'Move them now?', guards: names.map((host) => `move.${host}`), policy }],
      },
    })
  // A plan is refused until operations has received every host.
  const { operation_id } = await until(start, { what: 'the plan of all hosts', timeout_ms: 60_000, every_ms: 500 })
  const last = async () => {
    const { items } = await people.eva.get<{ items: unknown[] }>(
      `/v1/operations/${operation_id}/nodes?state=succeeded&page_size=500`,
    )
    return items.length === hosts
  }
  await until(last, { what: 'the first step of all hosts', timeout_ms: 120_000, every_ms: 500 })
  return operation_id
}
