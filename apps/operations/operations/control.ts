import { eq, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import { type Tx, together } from '../../../db/client.ts'
import { endWaits } from '../../../db/operations/agents/executions.ts'
import { countUnknown, isStartHeld, startHeld } from '../../../db/operations/commands/rows.ts'
import { SYSTEM, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import { listAskedAgain } from '../../../db/operations/gates/ask.ts'
import { cancelGates, waitingGates } from '../../../db/operations/gates/rows.ts'
import { listTargets, repin } from '../../../db/operations/leases/drift.ts'
import { listReleased, setLeaseState, takeLeases } from '../../../db/operations/leases/rows.ts'
import { countForStop, listCompensations, listStartable } from '../../../db/operations/nodes/rows.ts'
import { supersede } from '../../../db/operations/operations/undo.ts'
import { closePatches } from '../../../db/operations/patches/rows.ts'
import type { EvidenceSubject } from '../../../db/operations/tables/evidence.ts'
import { operation_control, operations } from '../../../db/operations/tables/index.ts'
import { NOW } from '../../../db/rows.ts'
import { refuseCancel, refuseEnded, refusePause, refuseResume } from '../../../workflows/operation/rules/control.ts'
import type { CancelMode, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { askHeads } from '../catalog/heads.ts'
import { type Command, checkIfMatch, type Decision, lockVisible, type Steps, type Subject } from '../command/command.ts'
import type { PlanningDeps, PolicyDeps, ReplanDeps, Uses } from '../deps.ts'
import { refuseLeaseHeld } from '../plans/leases.ts'
import { operationActions, operationObject, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import type { PolicyAction } from '../policies/cedar.ts'
import { driftOf, takeDrift } from './drift.ts'
import { readOperation } from './read.ts'

/** Pause: no new node starts; running ones finish. Complete with the commit: each claim reads the wanted control. */
export const pauseSteps = (deps: PolicyDeps & Uses<'config' | 'db'>, command: Command): Steps<Subject> =>
  onOperation(deps, command, 'operation.pause', async (tx, subject, command_id) => {
    await refuseOn(deps, tx, command, subject, refusePause(subject.facts))
    checkIfMatch(command.if_match, subject.revision)
    const [{ running, not_started }, paused] = await together(
      countForStop(tx, subject.operation_id),
      pausedIfHeld(tx, subject, command_id),
    )
    return {
      payload: {},
      head: subject.head,
      writes: [setControl(tx, subject.operation_id, { control: 'pause', pause_reason: 'operator' })],
      events: [said(command, command_id, 'operation.pausing', `${command.actor.name} paused the operation`), ...paused],
      // The engine may not have reported yet that an earlier pause is over.
      set: { engine_status: running.length > 0 ? 'running' : unlessHeld(subject, 'paused') },
      effect: { running, not_started },
    }
  })

/** Resume: claims are granted again; `acknowledge_drift` accepts the new values of changed targets. */
export const resumeSteps = (deps: ReplanDeps, command: Command, acknowledge_drift: boolean): Steps<Subject> => {
  const heads = askHeads(deps, () => listTargets(deps.db, command.operation_id))
  const steps = onOperation(deps, command, 'operation.resume', async (tx, subject, command_id) => {
    const unknown_nodes = await countUnknown(tx, subject.operation_id)
    await refuseOn(deps, tx, command, subject, refuseResume({ ...subject.facts, unknown_nodes }, { acknowledge_drift }))
    checkIfMatch(command.if_match, subject.revision)
    heads.require()
    const ignored = subject.constraints.on_drift === 'ignore'
    const drift = await driftOf(tx, deps, subject)
    const node_ids = ignored ? [] : drift.drifted.map(({ node_id }) => node_id)
    if (node_ids.length > 0 && !acknowledge_drift) throw driftUnacknowledged(node_ids)
    await retakeLeases(tx, command, subject)
    const asked = node_ids.length > 0 ? await takeDrift(deps, tx, subject, drift) : undefined
    const next_nodes = await listStartable(tx, subject.operation_id)
    await setControl(tx, subject.operation_id, { control: 'run', pause_reason: null })
    return {
      payload: { acknowledged: node_ids, ...(await listAskedAgain(tx, subject.operation_id)) },
      events: [
        said(command, command_id, 'operation.resumed', `${command.actor.name} resumed the operation`, {
          acknowledged: node_ids,
        }),
        ...(asked?.events ?? []).map((event) => ({ ...event, actor: command.actor, command_id })),
      ],
      set: {
        pins: { ...subject.pins, ...drift.pins },
        engine_status: unlessHeld(subject, 'queued'),
        ...(asked && { open_gates: waitingGates(subject.operation_id) }),
      },
      undo: { pause_reason: subject.facts.pause_reason, lease_state: subject.lease_state, ...asked?.before },
      effect: { drifted: node_ids, next_nodes, ...(asked && { rearmed_gates: Object.keys(asked.gates) }) },
    }
  })
  return { ...steps, ahead: heads.ahead }
}

const driftUnacknowledged = (drifted: string[]) =>
  new AppError(
    'stale_catalog_projection',
    'drift_unacknowledged',
    'Targets have changed since the plan. Resume with acknowledge_drift: true to take their new values.',
    { extra: { drifted } },
  )

/**
 * Refuses to begin nodes of a running operation on targets that are not as planned. Versions that moved without a value
 * are pinned again. While the operation is paused the nodes wait for a resume, which asks its sender.
 */
export const refuseDrifted = async (
  deps: PlanningDeps,
  tx: Tx,
  subject: Subject,
  node_ids: readonly string[],
): Promise<void> => {
  if (subject.facts.control !== 'run' || subject.constraints.on_drift === 'ignore') return
  const { drifted, pins } = await driftOf(tx, deps, subject)
  const moved = drifted.filter(({ node_id }) => node_ids.includes(node_id))
  const [first] = moved
  if (!first) {
    const changed = new Set(drifted.map(({ resource_id }) => resource_id))
    const silent = Object.entries(pins).filter(([resource_id]) => !changed.has(resource_id))
    return repin(tx, subject.operation_id, subject.pins, Object.fromEntries(silent))
  }
  throw new AppError(
    'stale_catalog_projection',
    'drift_unacknowledged',
    `"${first.resource_id}" has changed since the plan was made: the effect of "${first.node_id}" would differ.`,
    {
      hint: 'Pause the operation, retry the node, and resume with acknowledge_drift: true to take the new values.',
      extra: { drifted: moved.map(({ node_id }) => node_id) },
    },
  )
}

/** Takes leases again that were given back during the pause, all or none. */
const retakeLeases = async (tx: Tx, { caller }: Command, { operation_id, lease_state }: Subject): Promise<void> => {
  // Leases released by a gate are taken again when it lets something start.
  if (lease_state !== 'given_back') return
  const wanted = await listReleased(tx, operation_id)
  await refuseLeaseHeld(tx, caller, await takeLeases(tx, operation_id, wanted, { queue: false }))
  await setLeaseState(tx, operation_id, 'held')
}

/**
 * Cancel: open gates close, and start-class commands that were never sent are undone, all in this transaction. An
 * operation whose start was never sent ends immediately.
 */
export const cancelSteps = (
  deps: PolicyDeps & Uses<'config' | 'db'>,
  command: Command,
  mode: CancelMode,
): Steps<Subject> =>
  onOperation(
    deps,
    command,
    mode === 'force' ? 'operation.force_cancel' : 'operation.cancel',
    async (tx, subject, command_id) => {
      const { operation_id, now, facts } = subject
      await refuseOn(deps, tx, command, subject, refuseCancel(facts, { mode, now, cooloff_s: deps.cooloff_s }))
      checkIfMatch(command.if_match, subject.revision)
      const { running, not_started } = await countForStop(tx, operation_id)
      const compensations = mode === 'compensate' ? await listCompensations(tx, operation_id) : []
      const first = facts.control !== 'cancel'
      await setControl(tx, operation_id, {
        control: 'cancel',
        cancel_mode: mode,
        pause_reason: null,
        ...(first && { cancelled_at: NOW }),
      })
      if (first && running.length > 0) await endWaits(tx, operation_id)
      const cancelled = said(
        command,
        command_id,
        'operation.cancelling',
        `${command.actor.name} canceled the operation (${mode})`,
        { mode },
      )
      const effect = { running, not_started, compensations }
      const { unsent, undone } = await supersede(tx, operation_id, command.actor)
      const closed = await cancelGates(tx, operation_id)
      const patches = (await closePatches(tx, operation_id, 'operation_cancelled')).map((fact) => ({
        ...fact,
        actor: command.actor,
        command_id,
      }))
      const gates = closed.map(({ gate_id, round }) => ({
        type: 'gate.cancelled',
        actor: command.actor,
        gate_id,
        command_id,
        data: { round },
      }))
      const events = [cancelled, ...undone, ...gates, ...patches]
      const neverStarted = unsent.some(({ kind }) => kind === 'start')
      return { payload: neverStarted ? null : { mode }, events, set: { open_gates: 0 }, effect }
    },
  )

/**
 * Resources have changed. If nodes that have not begun would differ from the plan, the operation is paused until a
 * person accepts the changes (operations.md 3.4). Versions that move without a value are pinned again.
 */
export const driftSteps = (
  deps: PlanningDeps & PolicyDeps & Uses<'db'>,
  command: Command,
  resource_ids: readonly string[],
): Steps<Subject> =>
  onOperation(deps, command, 'operation.signal', async (tx, subject, command_id) => {
    const { operation_id, facts, pins, constraints } = subject
    await refuseOn(deps, tx, command, subject, refuseEnded(facts))
    const drift = await driftOf(tx, deps, subject, resource_ids)
    const node_ids = drift.drifted.map(({ node_id }) => node_id)
    const ignored = constraints.on_drift === 'ignore' || node_ids.length === 0
    if (ignored) await repin(tx, operation_id, pins, drift.pins)
    if (ignored || facts.control !== 'run') return { payload: null, events: [], effect: { drifted: node_ids } }
    await setControl(tx, operation_id, { control: 'pause', pause_reason: 'catalog_drift' })
    const statement = `Nodes whose targets no longer have the planned version: ${node_ids.length}`
    return {
      payload: { node_ids },
      events: [
        said(command, command_id, 'operation.drifted', statement, { node_ids, resource_ids }),
        ...(await pausedIfHeld(tx, subject, command_id)),
      ],
      set: { engine_status: unlessHeld(subject, 'paused') },
      effect: { drifted: node_ids },
    }
  })

/** Sends a signal to the wait node of that name; it is kept until a node waits for it. */
export const nodeSignalSteps = (
  deps: PolicyDeps & Uses<'config' | 'db'>,
  command: Command,
  { name, payload = {} }: { name: string; payload?: Record<string, unknown> },
): Steps<Subject> =>
  onOperation(deps, command, 'operation.signal', async (tx, subject, command_id) => {
    await refuseOn(deps, tx, command, subject, refuseEnded(subject.facts))
    const statement = `${command.actor.name} sent the signal ${name}`
    return {
      payload: { name },
      events: [said(command, command_id, 'operation.signalled', statement, { name, payload })],
      effect: { name },
    }
  })

/** While its start is held for leases the engine cannot report: the rows then say what it would. */
const unlessHeld = ({ operation_id }: Subject, status: 'queued' | 'paused') =>
  sql<string>`case when ${startHeld(operation_id)} then ${status} else ${operations.engine_status} end`

/** The pause is then complete with its command, which states that in the engine's place. */
const pausedIfHeld = async (tx: Tx, { operation_id }: Subject, command_id: string): Promise<TimelineEvent[]> =>
  (await isStartHeld(tx, operation_id))
    ? [{ type: 'operation.paused', actor: SYSTEM, command_id, data: { status: 'paused' } }]
    : []

const setControl = (tx: Tx, operation_id: string, set: PgUpdateSetSource<typeof operation_control>) =>
  tx.update(operation_control).set(set).where(eq(operation_control.operation_id, operation_id))

export const said = (
  command: Command,
  command_id: string,
  type: string,
  statement: string,
  data: Record<string, unknown> = {},
  more: Pick<EvidenceSubject, 'freezes'> = {},
): TimelineEvent => ({
  type,
  actor: command.actor,
  reason: command.reason,
  command_id,
  data,
  evidence: {
    kind: 'command',
    statement,
    subject: { type: 'operation', id: command.operation_id, ...more },
    subject_digest: digest({ command_id, kind: command.kind, reason: command.reason, data }),
  },
})

/** The frame of a command on the whole operation: lock, policy, then `decide`. */
export const onOperation = (
  deps: PolicyDeps & Uses<'config' | 'db'>,
  command: Command,
  action: PolicyAction,
  decide: (tx: Tx, subject: Subject, command_id: string) => Promise<Omit<Decision, 'object' | 'before'>>,
): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    if (command.caller)
      throwIfRefused(refuseByPolicy(deps, command.caller, action, operationObject(subject), subject.places))
    return {
      ...(await decide(tx, subject, command_id)),
      object: `operation:${subject.operation_id}`,
      before: { ...subject.facts, revision: subject.revision },
    }
  },
  render: ({ operation_id }) => readOperation(deps, command.caller, operation_id),
  allowed: async () => (await readOperation(deps, command.caller, command.operation_id)).allowed_actions,
})

/** Throws a refusal that reports the operation's state and the actions that are possible instead. */
export const refuseOn = async (
  deps: Uses<'clock' | 'cooloff_s' | 'policies'>,
  tx: Tx,
  { caller }: Command,
  subject: Subject,
  refusal: RefusalCode | undefined,
): Promise<void> => {
  if (!refusal) return
  const facts = { ...subject.facts, unknown_nodes: await countUnknown(tx, subject.operation_id) }
  const allowed_actions = caller ? operationActions(deps, caller, subject, facts) : []
  throwIfRefused({ ...refusal, extra: { ...refusal.extra, operation_status: facts.status, allowed_actions } })
}
