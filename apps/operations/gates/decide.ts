import { sql } from 'drizzle-orm'
import { type Tx, together } from '../../../db/client.ts'
import type { TimelineEvent } from '../../../db/operations/facts/timeline.ts'
import { afresh } from '../../../db/operations/gates/ask.ts'
import { withdrawAwaiting } from '../../../db/operations/gates/awaiting.ts'
import { carryVotes, type GateRow, getGate, saveVote, swapGate, voidVotes } from '../../../db/operations/gates/rows.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import {
  type GateFacts,
  groupOfVote,
  mayTakeBack,
  outcomeOfVotes,
  refuseDigest,
  refuseGateApprove,
  refuseGateReject,
} from '../../../workflows/operation/rules.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { ApproveBody, RejectBody } from '../../shared/contracts/operations/gates.ts'
import type { GateStatus } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { Command, Decision } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import { checkIfMatch, lockVisible, type Subject } from '../command/subject.ts'
import type { OperationsDeps } from '../deps.ts'
import { gateOfIntervention, passIntervention } from '../interventions/second.ts'
import { refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import type { PolicyAction } from '../policies/cedar.ts'
import { loadPlaces } from '../policies/visibility.ts'
import { type LostVote, type People, refuseTainted, withPeople } from '../policies/voters.ts'
import {
  eligibleGroups,
  externalOnly,
  footingOf,
  gateFacts,
  gateObject,
  operationFactsOf,
  votingGroups,
} from '../policies/votes.ts'
import { readGate } from './read.ts'
import { approvalsOf, lostAmong, voidedEvents } from './standing.ts'
import { refuseAuthor, refuseBypass } from './view.ts'

type GateCommand = Command & { gate_id: string; caller: Caller }

/**
 * Approves a gate: a vote, and the decision when it completes the quorum. The row is where the race ends: approve,
 * reject, expiry and cancel swap the same `waiting` row, and exactly one wins.
 */
export const approveGate = (deps: OperationsDeps, command: GateCommand, body: ApproveBody) =>
  withPeople(deps.trust, (people) => approveKnowing(deps, command, body, people))

/** Approves, knowing of these people what identity said a moment ago: those whose votes complete the quorum. */
const approveKnowing = (deps: OperationsDeps, command: GateCommand, body: ApproveBody, people: People) =>
  decideGate(deps, command, async (tx, { row, facts, subject, command_id }) => {
    const action = body.break_glass ? 'gate.break_glass' : 'gate.approve'
    if (body.break_glass) throwIfRefused(refuseBypass(row.gate))
    else throwIfRefused(refuseAuthor(row.gate, command.caller.user_id))
    checkPolicy(deps, command, { row, subject }, action, body.as_group)
    if (!body.break_glass) throwIfRefused(externalOnly(row.gate.kind))
    throwIfRefused(refuseTaint(deps, { command, row, subject }))
    throwIfRefused(refuseGateApprove(subject.facts, facts, { round: body.round, user_id: command.caller.user_id }))
    checkIfMatch(command.if_match, subject.revision)
    throwIfRefused(refuseDigest(facts, body.reviewed_digest))
    if (row.gate.policy.comment_on_approve && body.comment === undefined) throw commentMissing()
    if (body.break_glass) return bypass(tx, command, row, subject, command_id, body.break_glass.reason)
    const vote = { decision: 'approve' as const, comment: body.comment ?? null, as_group: body.as_group }
    const cast = await castVote(deps, tx, { command, row, subject, command_id, people }, vote)
    return ofIntervention(deps, tx, command, row, subject, cast)
  })

/** Rejects a gate; one who approved may take that back as long as nothing behind the gate has started. */
export const rejectGate = (deps: OperationsDeps, command: GateCommand, body: RejectBody) =>
  decideGate(deps, command, async (tx, { row, facts, subject, command_id }) => {
    checkPolicy(deps, command, { row, subject }, 'gate.reject', undefined)
    throwIfRefused(externalOnly(row.gate.kind))
    throwIfRefused(refuseGateReject(subject.facts, facts, { round: body.round, user_id: command.caller.user_id }))
    checkIfMatch(command.if_match, subject.revision)
    const vote = { decision: 'reject' as const, comment: body.comment, as_group: undefined }
    if (!mayTakeBack(facts, command.caller.user_id)) {
      const cast = await castVote(deps, tx, { command, row, subject, command_id, people: NOBODY }, vote)
      return ofIntervention(deps, tx, command, row, subject, cast)
    }
    return takeBack(tx, command, row, command_id, vote)
  })

type Deciding = { row: GateRow; facts: ReturnType<typeof gateFacts>; subject: Subject; command_id: string }

const decideGate = (
  deps: OperationsDeps,
  command: GateCommand,
  decide: (tx: Tx, deciding: Deciding) => Promise<Omit<Decision, 'object' | 'before'>>,
) =>
  runCommand(deps, command, {
    lock: async (tx) => {
      // Both send as they are called: the gate is read once the lock is held.
      const [subject, row] = await together(
        lockVisible(deps, tx, command),
        getGate(tx, command.operation_id, command.gate_id),
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
  deps: OperationsDeps,
  { caller }: GateCommand,
  { row, subject }: Pick<Deciding, 'row' | 'subject'>,
  action: PolicyAction,
  as_group: string | undefined,
) => {
  const groups = votingGroups(row.gate, caller, subject.now)
  const voting = as_group === undefined ? groups : groups.filter((group) => group === as_group)
  throwIfRefused(refuseByPolicy(deps, caller, action, gateObject(row, subject.places), subject.places, voting))
}

type Cast = Omit<Decision, 'object' | 'before'>

/**
 * A decided gate of kind intervention guards nothing: the intervention is done with the approval, in one transaction, or
 * withdrawn with the rejection. The engine hears of the intervention only.
 */
const ofIntervention = async (
  deps: OperationsDeps,
  tx: Tx,
  command: GateCommand,
  { gate }: GateRow,
  subject: Subject,
  cast: Cast,
): Promise<Cast> => {
  if (gate.kind !== 'intervention' || cast.payload === null) return cast
  const { gate_id } = gate
  if (cast.effect.status !== 'approved') {
    await withdrawAwaiting(tx, gate_id.slice(gateOfIntervention('').length))
    return { ...cast, payload: null }
  }
  const done = await passIntervention(deps, tx, { subject, approving: command, gate_id })
  return { ...cast, payload: null, events: [...cast.events, ...done.events], set: { ...cast.set, ...done.set } }
}

type NewVote = { decision: 'approve' | 'reject'; comment: string | null; as_group: string | undefined }

type Casting = { command: GateCommand; row: GateRow; subject: Subject; command_id: string; people: People }
/** A rejection counts nobody's approval. */
const NOBODY: People = new Map()

/**
 * Records a vote and, when it completes the round, the decision: the swap is what a faster decision makes impossible.
 * Approvals of others that would complete it are proved again first, and void where they no longer count.
 */
const castVote = async (
  deps: OperationsDeps,
  tx: Tx,
  { command, row, subject, command_id, people }: Casting,
  vote: NewVote,
) => {
  const { gate } = row
  const { user_id } = command.caller
  const all = gateFacts(row).votes
  const own = all.find((other) => other.user_id === user_id)
  const others = all.filter((other) => other.user_id !== user_id)
  const lost =
    tally(others, { command, row, subject }, vote).status === 'approved'
      ? await lostOf(deps, tx, { command, row, subject, people })
      : []
  const counting = others.filter((other) => !lost.some((gone) => gone.user_id === other.user_id))
  const { group, status } = tally(counting, { command, row, subject }, vote)
  const effect = { gate_id: gate.gate_id, round: gate.round, status }
  if (own?.decision === vote.decision && status === 'waiting' && lost.length === 0)
    return { payload: null, events: [], effect }

  const used = gate.kind === 'intervention' && { consumed_at: sql`clock_timestamp()` as never }
  const set = status === 'waiting' ? {} : { ...decidedColumns(command, command_id, status, gate.digest), ...used }
  await together(
    swapOrRefuse(tx, row, set),
    lost.length > 0
      ? voidVotes(
          tx,
          gate,
          lost.map((gone) => gone.user_id),
        )
      : Promise.resolve(),
    saveVote(tx, { ...voteRow(command, row, command_id, vote), round: gate.round, group_key: group }),
  )
  const decision = decisionOf(command, row, command_id, { ...effect, vote, group })
  return { ...decision, events: [...voidedEvents(row, lost), ...decision.events] }
}

/** A right that somebody gave who takes part in the operation decides nothing. */
const refuseTaint = ({ lookback_s }: OperationsDeps, { command: { caller }, row, subject }: Tallied) =>
  refuseTainted(caller, footingOf(row, caller.user_id, { places: subject.places, now: subject.now, lookback_s }))

type Tallied = Pick<Casting, 'command' | 'row' | 'subject'>

/** The group that a vote fills beside these others, and what the round comes to with it. */
const tally = (others: GateFacts['votes'], { command, row: { gate }, subject }: Tallied, vote: NewVote) => {
  const own = votingGroups(gate, command.caller, subject.now)
  const group = groupOfVote({ policy: gate.policy, votes: others }, eligibleGroups(gate), own, vote.as_group)
  const cast = { user_id: command.caller.user_id, decision: vote.decision, group_key: group }
  return { group, status: outcomeOfVotes({ policy: gate.policy, votes: [...others, cast] }) }
}

/** Approvals of others that no longer count. */
const lostOf = async (
  deps: OperationsDeps,
  tx: Tx,
  { command, row, subject, people }: Omit<Casting, 'command_id'>,
): Promise<LostVote[]> => {
  const approvals = approvalsOf(row).filter(({ user_id }) => user_id !== command.caller.user_id)
  if (approvals.length === 0) return []
  return lostAmong(row, approvals, people, {
    places: await loadPlaces(tx, subject.resource_ids),
    now: subject.now,
    lookback_s: deps.lookback_s,
  })
}

/** One who approved changes their mind: a new round with the others' votes, rejected at once where one is enough. */
const takeBack = async (tx: Tx, command: GateCommand, row: GateRow, command_id: string, vote: NewVote) => {
  const { gate } = row
  const round = gate.round + 1
  const status: GateStatus = gate.policy.reject_rule === 'any' ? 'rejected' : 'waiting'
  await swapOrRefuse(tx, row, {
    round,
    ...(status === 'rejected'
      ? decidedColumns(command, command_id, status, gate.digest)
      : { status, ...afresh(gate.policy.deadline_s) }),
  })
  await carryVotes(tx, gate.operation_id, gate.gate_id, gate.round, command.caller.user_id)
  await saveVote(tx, { ...voteRow(command, row, command_id, vote), round, group_key: null })
  const kept = gateFacts(row).votes.flatMap(({ user_id }) => (user_id === command.caller.user_id ? [] : [user_id]))
  return decisionOf(command, row, command_id, { gate_id: gate.gate_id, round, status, vote, group: null, kept })
}

const bypass = async (
  tx: Tx,
  command: GateCommand,
  row: GateRow,
  subject: Subject,
  command_id: string,
  reason: string,
) => {
  const { gate } = row
  const { gate_id, round } = gate
  await swapOrRefuse(tx, row, decidedColumns(command, command_id, 'bypassed', gate.digest))
  const exception = { kind: 'gate_bypassed', gate_id, actor: command.actor, at: subject.now, reason }
  return {
    payload: { gate_id, round, status: 'bypassed', digest: gate.digest },
    events: [
      {
        ...said(command, gate_id, command_id),
        type: 'gate.bypassed',
        reason,
        data: { round, digest: gate.digest },
        evidence: {
          kind: 'exception' as const,
          statement: `${command.actor.name} broke the glass of gate ${gate_id}`,
          subject: { type: 'gate', id: gate_id, round, status: 'bypassed', digest: gate.digest },
          subject_digest: digest(exception),
        },
      },
    ],
    set: {
      open_gates: sql`greatest(${operations.open_gates} - 1, 0)`,
      exceptions: [...subject.exceptions, exception],
    },
    undo: { gates: [undoOf(row)] },
    effect: { gate_id, round, status: 'bypassed' },
  }
}

const decidedColumns = (command: Command, command_id: string, status: GateStatus, approved: string) => ({
  status,
  approved_digest: status === 'approved' || status === 'bypassed' ? approved : null,
  decided_by: command.actor,
  decided_at: sql`clock_timestamp()` as never,
  decided_command_id: command_id,
})

const voteRow = (command: GateCommand, { gate }: GateRow, command_id: string, { decision, comment }: NewVote) => ({
  operation_id: gate.operation_id,
  gate_id: gate.gate_id,
  user_id: command.caller.user_id,
  decision,
  comment,
  digest: gate.digest,
  actor: command.actor,
  command_id,
})

/** Somebody was faster: the rules say on fresh rows what the gate is now. */
const swapOrRefuse = async (tx: Tx, { gate }: GateRow, set: Record<string, unknown>) => {
  const from = { status: gate.status, round: gate.round }
  if (await swapGate(tx, { operation_id: gate.operation_id, gate_id: gate.gate_id, from, set })) return
  const fresh = await getGate(tx, gate.operation_id, gate.gate_id)
  if (fresh)
    throwIfRefused(refuseGateApprove(operationFactsOf(fresh), gateFacts(fresh), { round: from.round, user_id: '' }))
  throw new AppError('gate_not_waiting', 'already_decided', 'The gate was decided a moment ago.')
}

type Outcome = {
  gate_id: string
  round: number
  status: GateStatus
  vote: NewVote
  group: string | null
  /** It was taken back, which is sent: whose votes go on in the new round. */
  kept?: string[]
}

const decisionOf = (command: GateCommand, row: GateRow, command_id: string, outcome: Outcome) => {
  const { gate_id, round, status, vote, group, kept } = outcome
  const { gate } = row
  const cast = { round, decision: vote.decision, group, digest: gate.digest }
  const verb = vote.decision === 'approve' ? 'approved' : 'rejected'
  const events: TimelineEvent[] = [
    {
      ...said(command, gate_id, command_id),
      type: 'gate.voted',
      reason: vote.comment,
      data: cast,
      evidence: {
        kind: 'vote',
        statement: `${command.actor.name} ${verb} gate ${gate_id}, round ${round}`,
        subject: { type: 'gate', id: gate_id, ...cast, voter: command.caller.user_id },
        subject_digest: digest({ gate_id, ...cast, comment: vote.comment }),
      },
    },
  ]
  if (status !== 'waiting' || kept)
    events.push({
      ...said(command, gate_id, command_id),
      type: status === 'waiting' ? 'gate.reopened' : `gate.${status}`,
      reason: vote.comment,
      data: { round, digest: gate.digest },
      evidence: {
        kind: 'gate_decision',
        statement: `Gate ${gate_id} is ${status} in round ${round}`,
        subject: { type: 'gate', id: gate_id, round, status, digest: gate.digest, ...(kept && { kept }) },
        subject_digest: gate.digest,
      },
    })
  const change = status === 'waiting' ? (gate.status === 'waiting' ? 0 : 1) : gate.status === 'waiting' ? -1 : 0
  return {
    payload: status === 'waiting' && !kept ? null : { gate_id, round, status, digest: gate.digest },
    events,
    set: change === 0 ? {} : { open_gates: sql`greatest(${operations.open_gates} + ${change}, 0)` },
    undo: { gates: [undoOf(row)] },
    effect: { gate_id, round, status },
  }
}

const said = (command: Command, gate_id: string, command_id: string) => ({ actor: command.actor, gate_id, command_id })

/** What a withdrawal puts back; the round itself only grows, and the deadline starts afresh. */
const undoOf = ({ gate }: GateRow) => ({
  gate_id: gate.gate_id,
  status: 'waiting',
  approved_digest: null,
  decided_by: null,
  decided_at: null,
  decided_command_id: null,
  waiting_since: gate.waiting_since,
  deadline_at: gate.deadline_at,
})

const commentMissing = () =>
  new AppError('validation_error', 'schema_violation', 'The policy of this gate asks for a comment.', {
    status: 400,
    violations: [{ pointer: '/comment', code: 'required', message: 'is required by the policy of this gate' }],
  })
