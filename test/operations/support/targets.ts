import { claimAttempt } from '../../../db/operations/nodes/claim.ts'
import { must, type Platform } from './platform.ts'

/** An operation whose one node works on this resource, and the answer to a claim of it; `before` runs before its start. */
export const operationOn = async (
  p: Platform,
  resource_id: string,
  beside: () => Promise<unknown> = async () => {},
  before: () => Promise<unknown> = async () => {},
) => {
  await p.query(
    `insert into operations.catalog_resources (resource_id, type_key, type_version, name, version, lifecycle_status, labels, desired_state, observed_state)
     values ($1, 't', 1, $1, 1, 'active', '{}', '{}', '{}') on conflict do nothing`,
    [resource_id],
  )
  await p.query('update operations.projection set at = clock_timestamp()')
  const graph = { nodes: [{ node_id: 'work', executor: 'noop', with: {}, target_id: resource_id }] }
  const stated = { kind: 'graph', title: 'a test', reason: 'to see', graph }
  const { intent_id } = must(await p.as('pia').post('/v1/intents', stated), 201).body
  const plan = must(await p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
  await before()
  const body = { reviewed_plan_hash: plan.plan_hash }
  const [started] = await Promise.all([p.as('olga').post(`/v1/plans/${plan.plan_id}/start`, body), beside()])
  const operation_id: string = must(started, 201, 202).body.operation_id
  const claim = async () => {
    const asked = { operation_id, node_id: 'work', role: 'run', generation: 1, attempt: 1 } as const
    const answer = await claimAttempt(p.deps.pool, asked)
    return answer.verdict === 'refused' ? `${answer.reason} ${answer.closure?.id}` : answer.verdict
  }
  const release = () => p.query('delete from operations.leases where operation_id = $1', [operation_id])
  return { operation_id, claim, release }
}
