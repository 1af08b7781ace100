import { checkPacks, SHIPPED_PACKS } from '../../../apps/catalog/packs/library.ts'
import type { ResourceType } from '../../../apps/operations/graph/types.ts'
import { makePlan } from '../../../apps/operations/planner/plan.ts'
import { host, inputOf } from '../../operations/support/planner.ts'

/** The plan of a shipped action or runbook on one workspace, or on a resource of another type. */
export const planOf = (
  action_key: string,
  parameters: Record<string, unknown> = {},
  {
    type_key = 'delivery.workspace',
    observed = {},
    ...more
  }: { type_key?: string; observed?: object; [member: string]: unknown } = {},
  kind: 'action' | 'runbook' = 'action',
) => {
  const desired_state = { source: 'files', workspace: 'eu1', variables: { text: 'hello' }, ...more }
  const target = host('files-eu1', { type_key, desired_state, observed_state: { ...observed } })
  const runbook = { pack: 'delivery', procedure: action_key, parameters }
  const asked = kind === 'action' ? { kind, action: { action_key, parameters } } : { kind, runbook }
  const types = checkPacks([SHIPPED_PACKS]).model.types as unknown as ResourceType[]
  const input = { ...inputOf([target], asked), types }
  return makePlan(input).document
}
