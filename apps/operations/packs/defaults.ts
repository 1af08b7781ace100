import type { Compensation, GatePolicy, PlanNode, TargetRead } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { EXECUTORS } from '../graph/executors.ts'
import type { GraphNode, Step } from '../graph/types.ts'
import type { GatePolicyFile, ProcedureFile, StepFile } from './schema.ts'

/** The defaults (operations.md 3.1, 4.1, 4.2). */
const RETRY = { max_attempts: 1, initial_s: 1, factor: 2, max_s: 60 }
const RUN_S = 60

const STEP_DEFAULTS = { on_failure: 'hold', join: 'all', skippable: true } as const

/** A watch reports its findings whether it passed or failed, even if its author names no outputs. */
const WATCH_OUTPUTS = { passed: '/passed', samples: '/samples', checks: '/checks' }
const outputsOf = (executor: string, outputs: Record<string, string> | undefined) =>
  outputs ?? (executor === 'watch' ? WATCH_OUTPUTS : undefined)

const COMPENSATION_KEYS = ['executor', 'with', 'idempotent'] as const

/** Returns a step of a pack, with the procedure's defaults applied to it and to its compensation. */
export const stepOf = (file: StepFile, defaults: ProcedureFile['defaults'] = {}): Step => {
  const merged = mergePatch(defaults, file) as StepFile
  const { timeouts, retry, compensate, with: values = {}, executor = '', ...rest } = merged
  const base = Object.fromEntries(
    COMPENSATION_KEYS.flatMap((key) => (merged[key] === undefined || key === 'with' ? [] : [[key, merged[key]]])),
  )
  const outputs = outputsOf(executor, merged.outputs)
  // Values for one executor do not fit another.
  const under = (compensate?.executor ?? executor) === executor ? (defaults.with ?? {}) : {}
  const undo = compensate && (mergePatch({ ...base, with: under }, compensate) as Partial<Compensation>)
  return {
    ...STEP_DEFAULTS,
    ...rest,
    name: merged.name ?? merged.id,
    needs: merged.needs ?? [],
    executor,
    with: values,
    idempotent: merged.idempotent ?? EXECUTORS.get(executor)?.idempotent(values) ?? false,
    timeouts: { ...timeouts, run_s: timeouts?.run_s ?? RUN_S },
    retry: { ...RETRY, ...retry },
    ...(outputs && { outputs }),
    ...(undo && { compensate: { executor, ...undo, with: undo.with ?? {} } }),
  }
}

/** Returns the look at a target, with the procedure's defaults applied to its call. */
export const readOf = (
  { executor, with: values = {}, expect }: NonNullable<ProcedureFile['read']>,
  defaults: ProcedureFile['defaults'] = {},
): TargetRead => ({
  executor: executor ?? defaults.executor ?? '',
  with: mergePatch(defaults.with ?? {}, values),
  expect,
})

/** Returns a node of a graph intent with everything filled in; barriers and waits run without an executor. */
export const nodeOf = (given: GraphNode): PlanNode => {
  const { timeouts, retry, compensate, ...rest } = given
  const kind = given.kind ?? 'task'
  const executor = kind === 'task' ? (given.executor ?? '') : ''
  const values = (given.with ?? {}) as Record<string, unknown>
  const outputs = outputsOf(executor, given.outputs)
  return {
    ...STEP_DEFAULTS,
    ...rest,
    name: given.name ?? given.node_id,
    kind,
    executor,
    with: values,
    depends_on: given.depends_on ?? [],
    idempotent: given.idempotent ?? EXECUTORS.get(executor)?.idempotent(values) ?? false,
    timeouts: { ...timeouts, run_s: timeouts?.run_s ?? RUN_S },
    retry: { ...RETRY, ...retry },
    ...(outputs && { outputs }),
    ...(compensate && {
      compensate: { executor, idempotent: given.idempotent ?? false, ...compensate, with: compensate.with ?? {} },
    }),
  }
}

/** Returns the policy for cases where silence must not count as consent: a timeout is a rejection. */
export const rejectingInTime = ({ digest: _, version, ...content }: GatePolicy): GatePolicy => {
  const rejecting = { ...content, on_timeout: 'reject' as const }
  return { ...rejecting, digest: digest(rejecting), ...(version !== undefined && { version }) }
}

/** Returns the policy with these upstream outputs bound, too. */
export const withBinds = ({ digest: _, version, ...content }: GatePolicy, binds: readonly string[]): GatePolicy => {
  const binding = { ...content, binds: [...new Set([...content.binds, ...binds])] }
  return { ...binding, digest: digest(binding), ...(version !== undefined && { version }) }
}

/** Returns a policy with its defaults; its digest covers its requirements, but neither its version nor its title. */
export const policyOf = (
  key: string,
  file: Partial<Omit<GatePolicyFile, 'format' | 'key' | 'question' | 'applies' | 'place'>>,
): GatePolicy => {
  const content = {
    key,
    quorum: file.approvals?.quorum ?? 1,
    groups: file.approvals?.groups ?? [],
    four_eyes: file.approvals?.four_eyes ?? true,
    reject_rule: file.approvals?.reject_rule ?? ('any' as const),
    comment_on_approve: file.approvals?.comment_on_approve ?? false,
    ...(file.approvals?.signature && { signature: file.approvals.signature }),
    ...(file.approvals?.new_members && { new_members: file.approvals.new_members }),
    ...(file.bulk === false && { bulk: file.bulk }),
    deadline_s: file.check?.timeout_s ?? file.deadline_s ?? 86_400,
    escalation: file.escalation ?? [],
    on_timeout: file.on_timeout ?? ('reject' as const),
    on_reject: file.on_reject ?? ('fail_nodes' as const),
    lease_policy: file.lease_policy ?? ('hold' as const),
    binds: file.binds ?? [],
    ...(file.on_voter_loss && { on_voter_loss: file.on_voter_loss }),
    ...(file.check && { check: file.check }),
  }
  return { ...content, digest: digest(content), ...(file.version !== undefined && { version: file.version }) }
}
