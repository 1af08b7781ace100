import { isObject } from '../../../shared/data/pointer.ts'
import { type CelProgram, compileCel } from '../../../shared/expressions/cel.ts'
import { writeExact } from '../../../shared/run/exact.ts'
import { refusal } from '../tools/types.ts'
import type { KubeObject } from './fields.ts'

/** `failed`: waiting will not make it ready. */
export type Readiness = { ready: boolean; failed?: boolean; words: string }
type Numbers = Record<string, number | undefined>
type Condition = { type: string; status: string; reason?: string; message?: string }

const READY: Readiness = { ready: true, words: 'ready' }
const waits = (words: string): Readiness => ({ ready: false, words })
const ends = ({ type, reason, message }: Condition): Readiness => ({
  ready: false,
  failed: true,
  words: `${type} ${reason ?? ''}: ${message ?? ''}`.trim(),
})

const statusOf = ({ status }: KubeObject) => (isObject(status) ? status : {}) as Numbers & { phase?: string }
const wordsOf = (object: KubeObject) => statusOf(object) as { reason?: string; message?: string }
const specOf = ({ spec }: KubeObject) => (isObject(spec) ? spec : {}) as Numbers
const conditionsOf = (object: KubeObject): Condition[] => {
  const { conditions } = statusOf(object) as { conditions?: unknown }
  return Array.isArray(conditions) ? (conditions as Condition[]) : []
}

/** Ready if at least `want` of an amount exist; otherwise says how many do. */
const countOf = (have: number | undefined, want: number, words: string): Readiness =>
  (have ?? 0) >= want ? READY : waits(`${have ?? 0} of ${want} ${words}`)
const firstOpen = (...all: Readiness[]): Readiness => all.find(({ ready }) => !ready) ?? READY

const KINDS: Record<string, (object: KubeObject) => Readiness> = {
  Deployment: (object) => {
    const { replicas = 1 } = specOf(object)
    const { updatedReplicas, availableReplicas, replicas: all = 0 } = statusOf(object)
    const slow = conditionsOf(object).find(({ reason }) => reason === 'ProgressDeadlineExceeded')
    if (slow) return ends(slow)
    return firstOpen(
      countOf(updatedReplicas, replicas, 'replicas are updated'),
      all > (updatedReplicas ?? 0) ? waits(`old replicas left: ${all - (updatedReplicas ?? 0)}`) : READY,
      countOf(availableReplicas, replicas, 'replicas are available'),
    )
  },
  ReplicaSet: (object) => countOf(statusOf(object).readyReplicas, specOf(object).replicas ?? 1, 'replicas are ready'),
  StatefulSet: (object) => {
    const { replicas = 1 } = specOf(object)
    const { updateStrategy } = object.spec as { updateStrategy?: { type?: string; rollingUpdate?: Numbers } }
    const { readyReplicas, updatedReplicas } = statusOf(object)
    if (updateStrategy?.type === 'OnDelete') return READY
    const rolled = Math.max(replicas - (updateStrategy?.rollingUpdate?.partition ?? 0), 0)
    return firstOpen(
      countOf(updatedReplicas, rolled, 'replicas are updated'),
      countOf(readyReplicas, replicas, 'replicas are ready'),
    )
  },
  DaemonSet: (object) => {
    const { desiredNumberScheduled, updatedNumberScheduled, numberAvailable } = statusOf(object)
    if (desiredNumberScheduled === undefined) return waits('not scheduled yet')
    return firstOpen(
      countOf(updatedNumberScheduled, desiredNumberScheduled, 'nodes are updated'),
      countOf(numberAvailable, desiredNumberScheduled, 'nodes are available'),
    )
  },
  Job: (object) => {
    const broken = conditionsOf(object).find(({ type, status }) => type === 'Failed' && status === 'True')
    if (broken) return ends(broken)
    if (conditionsOf(object).some(({ type, status }) => type === 'Complete' && status === 'True')) return READY
    const { succeeded = 0, active = 0 } = statusOf(object)
    return waits(`pods complete: ${succeeded}, active: ${active}`)
  },
  CustomResourceDefinition: (object) => {
    const refused = conditionsOf(object).find(({ type, status }) => type === 'NamesAccepted' && status === 'False')
    if (refused) return ends(refused)
    const established = conditionsOf(object).some(({ type, status }) => type === 'Established' && status === 'True')
    return established ? READY : waits('not established')
  },
}
const BUILT_IN = /^(apps|batch|apiextensions\.k8s\.io)\//

/** Whether an object has reached its desired state: by the rules of its kind, otherwise by its conditions. */
export const readinessOf = (object: KubeObject, own?: CelProgram): Readiness => {
  const { generation } = object.metadata as unknown as Numbers
  const { observedGeneration } = statusOf(object)
  const kind = BUILT_IN.test(object.apiVersion) ? KINDS[object.kind] : undefined
  if (
    generation !== undefined &&
    (observedGeneration ??
      (kind && object.kind !== 'Job' && object.kind !== 'CustomResourceDefinition' ? 0 : generation)) < generation
  )
    return waits('its controller has not seen it yet')
  const stalled = conditionsOf(object).find(({ type, status }) => type === 'Stalled' && status === 'True')
  if (stalled) return ends(stalled)
  if (own) return ownRule(object, own)
  if (kind) return kind(object)
  const isPod = object.apiVersion === 'v1' && object.kind === 'Pod'
  // A pod that has done its work is never "Ready" again.
  const phase = isPod ? statusOf(object).phase : undefined
  if (phase === 'Succeeded') return READY
  if (phase === 'Failed') return ends({ type: 'Failed', status: 'True', ...wordsOf(object) })
  const found = (name: string) => conditionsOf(object).find(({ type }) => type === name)
  const busy = found('Reconciling')
  const open = busy?.status === 'True' ? busy : [found('Ready'), found('PodScheduled')].find(isNotTrue)
  if (open) return waits(`${open.reason ?? 'not ready'}: ${open.message ?? ''}`.trim())
  // A pod has the condition only once it is on its node.
  return isPod && !found('Ready') ? waits(phase ?? 'not scheduled yet') : READY
}
const isNotTrue = (condition: Condition | undefined) => condition !== undefined && condition.status !== 'True'

/** A member that does not exist yet is no error: the object is not ready. */
const ownRule = (object: KubeObject, program: CelProgram): Readiness => {
  try {
    return program.test({ object: { status: {}, ...JSON.parse(writeExact(object)) } })
      ? READY
      : waits('ready_if is not true')
  } catch (error) {
    return waits(`ready_if: ${(error as Error).message}`)
  }
}

/** The step's rules for other kinds. */
export const rulesOf = (ready_if: unknown = {}): Map<string, CelProgram> => {
  if (!isObject(ready_if)) throw refusal('"wait.ready_if" must have an expression for each kind.')
  return new Map(
    Object.entries(ready_if).map(([kind, source]) => {
      try {
        return [kind, compileCel(String(source), ['object'])]
      } catch (error) {
        throw refusal(`"wait.ready_if" of ${kind}: ${(error as Error).message}`)
      }
    }),
  )
}
