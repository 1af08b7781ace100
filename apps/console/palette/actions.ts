import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import type { AllowedAction, Me, Plan } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { interventionsOfNode, interventionsOfOperation } from '../interventions/offered.ts'
import { patchQuery, planQuery, scheduleQuery } from '../queries/changes.ts'
import { gateQuery, nodeQuery, operationQuery } from '../queries/operations.ts'
import { actsOf } from '../schedules/acts.ts'
import { tChange } from '../words/change.ts'
import { tDecide } from '../words/decide.ts'
import { palette } from '../words/frame/palette.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tPlan } from '../words/plan.ts'
import type { Item } from './items.ts'

type Named = 'operation_id' | 'gate_id' | 'patch_id' | 'node_id' | 'plan_id' | 'resource_id' | 'schedule_id'
type Place = Partial<Record<Named, string>>
type Acting = { allowed_actions: AllowedAction[] } | undefined

/** The actions that the server allows this person on the open page; each opens its page or its dialog. */
export const useActions = (me: Me | undefined): Item[] => {
  const place: Place = useParams({ strict: false })
  const { operation_id = '', gate_id = '', patch_id = '', node_id = '', plan_id = '', schedule_id = '' } = place
  const operation = useQuery({ ...operationQuery(operation_id), enabled: operation_id !== '' }).data
  const gate = useQuery({ ...gateQuery(operation_id, gate_id), enabled: gate_id !== '' }).data
  const patch = useQuery({ ...patchQuery(operation_id, patch_id), enabled: patch_id !== '' }).data
  const plan = useQuery({ ...planQuery(plan_id), enabled: plan_id !== '' }).data
  const schedule = useQuery({ ...scheduleQuery(schedule_id), enabled: schedule_id !== '' }).data
  const node = useQuery({ ...nodeQuery(operation_id, node_id), enabled: node_id !== '' }).data
  const may = (object: Acting, action: string) => object !== undefined && mayPress(actionOf(object, action))
  const changes = me?.permissions.includes('intent:create')
  /** Two gates may ask the same question, so the key names what is opened too. */
  const action = (text: string, rest: Partial<Item>, of = ''): Item => ({
    ...{ key: `action ${text} ${of}`, text, aside: palette.action },
    ...rest,
  })
  const params = { operation_id }
  const graph: Item['link'] = { to: '/operations/$operation_id/graph', params }
  const dialog = (what: string, of: string) => ({ wish: { what, of } })
  const onOperation = (['pause', 'resume', 'cancel'] as const)
    .filter((what) => may(operation, what) || (what === 'cancel' && CANCELS.some((more) => may(operation, more))))
    .map((what) => action(tOperation.operation[what].button, { link: graph, ...dialog(what, operation_id) }))
  const intervenes = (offered: AllowedAction[] = []) => offered.some(mayPress)
  return [
    ...(['approve', 'reject'] as const)
      .filter((what) => gate?.status === 'waiting' && may(gate, what))
      .map((what) => action(tDecide.gate[what], dialog(what, gate_id))),
    ...(['approve', 'reject', 'withdraw'] as const)
      .filter((what) => patch?.status === 'awaiting_approval' && may(patch, what))
      .map((what) => action(what === 'withdraw' ? tChange.patch.withdraw : tDecide.gate[what], dialog(what, patch_id))),
    ...(may(plan, 'start') ? [action(tPlan.plan.start, dialog('start', plan_id))] : []),
    ...(may(plan, 'preview') && isPassed(plan) ? [action(tPlan.plan.again, dialog('preview', plan_id))] : []),
    ...(schedule ? actsOf(schedule) : [])
      .filter((what) => may(schedule, what))
      .map((what) => action(tPlan.schedule.action[what] ?? what, dialog(what, schedule_id))),
    ...(may(node, 'retry') ? [action(tOperation.node.retry, dialog('retry', node_id))] : []),
    ...(node && intervenes(interventionsOfNode(node).offered)
      ? [action(tChange.intervene.open, dialog('intervene', node_id))]
      : []),
    ...(operation?.open_gates ?? []).map((open) =>
      action(
        `${tOperation.operation.review_gate}: ${open.question}`,
        { link: { to: '/operations/$operation_id/gates/$gate_id', params: { operation_id, gate_id: open.gate_id } } },
        open.gate_id,
      ),
    ),
    ...(operation?.open_patches ?? []).map(({ patch_id, reason }) =>
      action(
        `${tChange.patch.review}: ${reason}`,
        { link: { to: '/operations/$operation_id/patches/$patch_id', params: { operation_id, patch_id } } },
        patch_id,
      ),
    ),
    ...onOperation,
    ...(may(operation, 'propose_patch')
      ? [action(tChange.patch.propose, { link: { to: '/operations/$operation_id/patches/new', params } })]
      : []),
    ...(operation && node === undefined && intervenes(interventionsOfOperation(operation).offered)
      ? [action(tChange.intervene.open, { link: graph, ...dialog('intervene', operation_id) })]
      : []),
    ...(changes && operation?.ended_at
      ? [
          action(tOperation.operation.action.again, { link: { to: '/new', search: { ...NEW, from: operation_id } } }),
          action(tOperation.operation.action.back, {
            link: { to: '/new', search: { ...NEW, from: operation_id, back: '' } },
          }),
        ]
      : []),
    ...(changes && place.resource_id
      ? [action(tPlan.intent.change, { link: { to: '/new', search: { ...NEW, resource: place.resource_id } } })]
      : []),
    ...(changes ? [action(t.nav.create, { link: { to: '/new', search: NEW } })] : []),
  ]
}

/** Whether the page of the plan offers another preview. */
const isPassed = (plan: Plan | undefined) =>
  plan?.operation_id === null && plan.superseded_by === null && plan.status !== 'ready'
const CANCELS = ['cancel_compensate', 'cancel_force']
const NEW = { kind: 'change', type: '', procedure: '', resource: '' } as const
