import { type Tx, together } from '../../../db/client.ts'
import { commandOfGate, withdrawAwaiting } from '../../../db/operations/gates/awaiting.ts'
import { type GateRow, lockGate } from '../../../db/operations/gates/rows.ts'
import {
  mayTakeBack,
  refuseDigest,
  refuseGateApprove,
  refuseGateReject,
} from '../../../workflows/operation/rules/gates.ts'
import type { ApproveBody, RejectBody } from '../../shared/contracts/operations/gates.ts'
import { AppError, notFound, wrongAt } from '../../shared/errors.ts'
import { checkIfMatch, type Decision, lockVisible, type Subject } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import { type Proof, signatureOf, withProof } from '../command/vote-signature.ts'
import type { CommandDeps, PlanningDeps, PolicyDeps, Uses } from '../deps.ts'
import { passIntervention } from '../interventions/second.ts'
import type { InterventionDeps } from '../interventions/types.ts'
import { refuseTogether } from '../patches/bulk.ts'
import { loadPlaces, refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import type { PolicyAction } from '../policies/cedar.ts'
import {
  bypassFooting,
  delegationTo,
  externalOnly,
  footingOf,
  gateFacts,
  gateObject,
  NOBODY,
  type People,
  refuseDelegated,
  refuseTainted,
  votingGroups,
  withPeople,
} from '../policies/footing.ts'
import { bypass, type Cast, castVote, type GateCommand, type Tallied, takeBack } from './cast.ts'
import { aloneOf, readGate, refuseAuthor, refuseBypass, refuseLostAuthor } from './view.ts'

/** Dependencies of deciding a gate. */
export type DecideDeps = CommandDeps & PlanningDeps & PolicyDeps & Uses<'lookback_s' | 'trust'>

/**
 * Approves a gate: a vote, and the decision if it completes the quorum. The row settles the race: approve, reject,
 * expiry and cancel swap the same `waiting` row, and exactly one wins.
 */
export const approveGate = (deps: DecideDeps, command: GateCommand, body: ApproveBody) => {
  const approve = (proof?: Proof) =>
    withPeople(deps.trust, (people) => approveKnowing(deps, command, body, people, proof))
  return body.assertion ? withProof(deps.trust, command.caller, body.assertion, approve) : approve()
}

/** Approves with identity's recent answers about the people whose votes complete the quorum. */
const approveKnowing = (deps: DecideDeps, command: GateCommand, body: ApproveBody, people: People, proof?: Proof) =>
  decideGate(deps, command, async (tx, { row, facts, subject, command_id }) => {
    const action = body.break_glass ? 'gate.break_glass' : 'gate.approve'
    const placed = await placedForOthers(tx, row, subject)
    if (body.break_glass) throwIfRefused(refuseBypass(row.gate))
    else throwIfRefused(refuseAuthor(row.gate, command.caller.user_id) ?? refuseLostAuthor(row.gate, placed, people))
    checkPolicy(deps, command, { row, subject }, action, body.as_group)
    if (!body.break_glass) throwIfRefused(externalOnly(row.gate.kind))
    checkBatch(deps, row, 'approve', body)
    throwIfRefused(refuseVoter(deps, { command, row, subject: placed }, people, body.break_glass !== undefined))
    throwIfRefused(refuseGateApprove(subject.facts, facts, { round: body.round, user_id: command.caller.user_id }))
    checkIfMatch(command.if_match, subject.revision)
    throwIfRefused(refuseDigest(facts, body.reviewed_digest))
    if (row.gate.policy.comment_on_approve && !body.break_glass && body.comment === undefined)
      throw wrongAt('/comment', 'is required by the policy of this gate', {
        as: 'required',
        detail: 'The policy of this gate requires a comment.',
      })
    if (body.break_glass) return bypass(tx, { command, row, subject, command_id }, body.break_glass.reason)
    const { gate_id: id, operation_id, policy, digest, round } = row.gate
    const voted = { operation_id, type: 'gate' as const, id, round, digest, user_id: command.caller.user_id }
    const signs = !body.dry_run && (body.assertion || policy.signature === 'required')
    const signature = signs ? await signatureOf(tx, voted, body.assertion, proof) : undefined
    const vote = {
      decision: 'approve' as const,
      comment: body.comment ?? null,
      as_group: body.as_group,
      signature,
      batch: body.batch,
    }
    const by = inPlaceOf(command, row, subject)
    const cast = await castVote(deps, tx, { command: by, row, subject, command_id, people }, vote)
    return ofIntervention(deps, tx, { command, row, subject, people }, cast)
  })

/** Rejects a gate; someone who approved may take that back while no node behind the gate has started. */
export const rejectGate = (deps: DecideDeps, command: GateCommand, body: RejectBody) =>
  decideGate(deps, command, async (tx, { row, facts, subject, command_id }) => {
    checkPolicy(deps, command, { row, subject }, 'gate.reject', undefined)
    throwIfRefused(externalOnly(row.gate.kind))
    checkBatch(deps, row, 'reject', body)
    throwIfRefused(refuseGateReject(subject.facts, facts, { round: body.round, user_id: command.caller.user_id }))
    checkIfMatch(command.if_match, subject.revision)
    const vote = { decision: 'reject' as const, comment: body.comment, as_group: undefined, batch: body.batch }
    const by = inPlaceOf(command, row, subject)
    if (!mayTakeBack(facts, command.caller.user_id)) {
      const cast = await castVote(deps, tx, { command: by, row, subject, command_id, people: NOBODY }, vote)
      return ofIntervention(deps, tx, { command, row, subject, people: NOBODY }, cast)
    }
    return takeBack(tx, { command: by, row, subject, command_id }, vote)
  })

/** A vote in a batch is allowed only for gates that may be decided together, and never breaks the glass. */
const checkBatch = (
  { config }: Uses<'config'>,
  row: GateRow,
  verdict: 'approve' | 'reject',
  { batch, break_glass }: Pick<ApproveBody, 'batch' | 'break_glass'>,
) => {
  if (batch === undefined) return
  if (break_glass) throw new AppError('policy_denied', 'bulk_not_allowed', 'Break-glass applies to one gate at a time.')
  throwIfRefused(refuseTogether(aloneOf(row, verdict, config.OPERATIONS__GATES__BULK_APPROVE)))
}

type Deciding = { row: GateRow; facts: ReturnType<typeof gateFacts>; subject: Subject; command_id: string }

const decideGate = (
  deps: CommandDeps & Uses<'clock' | 'library' | 'lookback_s' | 'policies' | 'trust'>,
  command: GateCommand,
  decide: (tx: Tx, deciding: Deciding) => Promise<Omit<Decision, 'object' | 'before'>>,
) =>
  runCommand(deps, command, {
    lock: async (tx) => {
      // Both queries are sent in the order of the calls, so the gate is read once the lock is held.
      const [subject, row] = await together(
        lockVisible(deps, tx, command),
        lockGate(tx, command.operation_id, command.gate_id),
      )
      return { subject, row }
    },
    decide: async (tx, { subject, row }, command_id) => {
      if (!row) throw notFound('gate', command.gate_id)
      const { status, round, digest: gate_digest } = row.gate
      const decided = await decide(tx, { row, facts: gateFacts(row), subject, command_id })
      return {
        ...decided,
        object: `gate:${command.operation_id}/${command.gate_id}`,
        before: { status, round, digest: gate_digest },
      }
    },
    render: async ({ operation_id }) => {
      const { view, operation_status } = await readGate(deps, command.caller, operation_id, command.gate_id)
      return { ...view, operation_status }
    },
    allowed: async () =>
      (await readGate(deps, command.caller, command.operation_id, command.gate_id)).view.allowed_actions,
  })

const checkPolicy = (
  deps: Uses<'clock' | 'policies'>,
  { caller }: GateCommand,
  { row, subject }: Pick<Deciding, 'row' | 'subject'>,
  action: PolicyAction,
  as_group: string | undefined,
) => {
  const groups = votingGroups(row.gate, caller, subject.now)
  const refuse = (as_groups: readonly string[]) =>
    refuseByPolicy(deps, caller, action, gateObject(row, subject.places), subject.places, as_groups)
  const refused = as_group === undefined ? undefined : refuse(groups.filter((group) => group === as_group))
  throwIfRefused(refuse(groups))
  // Without the group that it names, the vote would count.
  const detail = `"${as_group}" is not a group of yours that this gate asks for: leave out as_group.`
  throwIfRefused(refused && { ...refused, ...(refused.code === 'not_eligible' && { detail }) })
}

/**
 * A decided gate of kind intervention guards no node: approval carries out the intervention, and rejection withdraws
 * it, in the same transaction. The engine hears of the intervention only.
 */
const ofIntervention = async (
  deps: InterventionDeps,
  tx: Tx,
  { command, row: { gate }, subject, people }: Tallied & { people: People },
  cast: Cast,
): Promise<Cast> => {
  if (gate.kind !== 'intervention' || cast.payload === null) return cast
  const { gate_id } = gate
  const { writes = [], head: _, ...decided } = cast
  await together(...writes)
  const follows = commandOfGate(gate_id)
  if (cast.effect.status !== 'approved') {
    await withdrawAwaiting(tx, follows)
    return { ...decided, payload: null }
  }
  const done = await passIntervention(deps, tx, { subject, approving: command, gate_id, people })
  const [events, set] = [[...cast.events, ...done.events], { ...cast.set, ...done.set }]
  return { ...decided, payload: null, follows, events, set }
}

/** A vote by delegation names the person who delegated: the two count as one. */
const inPlaceOf = (command: GateCommand, { gate }: GateRow, { now }: Subject): GateCommand => {
  const given = delegationTo(gate, command.caller, now)
  return given ? { ...command, actor: { ...command.actor, in_place_of: given.by.id } } : command
}

/** The author of an intervention and a person who delegated need their rights there, even if the caller has all. */
const placedForOthers = async (tx: Tx, { gate }: GateRow, subject: Subject): Promise<Subject> =>
  gate.author_id === null && gate.delegations.length === 0
    ? subject
    : { ...subject, places: await loadPlaces(tx, subject.resource_ids) }

/** A right that a participant of the operation granted does not count, nor one delegated by a person who lost it. */
const refuseVoter = (
  { lookback_s }: Uses<'lookback_s'>,
  { command: { caller }, row, subject }: Tallied,
  people: People,
  broken: boolean,
) => {
  const measure = { places: subject.places, now: subject.now, lookback_s }
  if (broken) return refuseTainted(caller, bypassFooting(row, measure))
  return refuseTainted(caller, footingOf(row, caller.user_id, measure)) ?? refuseDelegated(row, caller, people, measure)
}
