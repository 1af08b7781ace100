import { sql } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import type { TimelineEvent } from '../../../db/operations/facts/state.ts'
import { afresh } from '../../../db/operations/gates/ask.ts'
import { carryVotes, type GateRow, saveVote, swapping, voidVotes } from '../../../db/operations/gates/rows.ts'
import { ADMINISTRATORS, notify_security, operations } from '../../../db/operations/tables/index.ts'
import { insertRow, NOW } from '../../../db/rows.ts'
import type { GateFacts } from '../../../workflows/operation/rules/facts.ts'
import { groupOfVote, outcomeOfVotes } from '../../../workflows/operation/rules/gates.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Batch } from '../../shared/contracts/operations/common.ts'
import type { VoteSignature } from '../../shared/contracts/operations/gates.ts'
import type { GateStatus } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Command, Decision, Subject } from '../command/command.ts'
import type { Uses } from '../deps.ts'
import { loadPlaces } from '../policies/authority.ts'
import {
  approvalsOf,
  eligibleGroups,
  gateFacts,
  type LostVote,
  lostAmong,
  type People,
  voidedEvents,
  votingGroups,
} from '../policies/footing.ts'

export type GateCommand = Command & { gate_id: string; caller: Caller }

export type Cast = Omit<Decision, 'object' | 'before'>

type NewVote = {
  decision: 'approve' | 'reject'
  comment: string | null
  as_group: string | undefined
  signature?: VoteSignature | undefined
  batch?: Batch | undefined
}

type Casting = { command: GateCommand; row: GateRow; subject: Subject; command_id: string; people: People }

/**
 * Records a vote and, if it completes the round, the decision. Others' approvals that would complete it are proved again first, and are void if they no longer count.
 */
export const castVote = async (
  deps: Uses<'lookback_s'>,
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
    tally(others, { command, row, subject, people }, vote).status === 'approved'
      ? await lostOf(deps, tx, { command, row, subject, people })
      : []
  const counting = others.filter((other) => !lost.some((gone) => gone.user_id === other.user_id))
  const { group, status } = tally(counting, { command, row, subject, people }, vote)
  const effect = { gate_id: gate.gate_id, round: gate.round, status }
  if (own?.decision === vote.decision && status === 'waiting' && lost.length === 0)
    return { payload: null, events: [], effect }

  const used = gate.kind === 'intervention' && status === 'approved' && { consumed_at: NOW }
  const set = status === 'waiting' ? {} : { ...decidedColumns(command, command_id, status, gate.digest), ...used }
  const gone = lost.map(({ user_id }) => user_id)
  const writes = [
    swapOf(tx, row, set),
    ...(gone.length > 0 ? [voidVotes(tx, gate, gone)] : []),
    saveVote(tx, { ...voteRow(command, row, command_id, vote), round: gate.round, group_key: group }),
  ]
  const decision = decisionOf(command, row, command_id, { ...effect, vote, group })
  return { ...decision, head: subject.head, writes, events: [...voidedEvents(row, lost), ...decision.events] }
}

export type Tallied = Pick<Casting, 'command' | 'row' | 'subject'>

/** Returns the group that a vote fills beside the others, and the resulting status of the round. */
const tally = (
  others: GateFacts['votes'],
  { command, row: { gate }, subject, people }: Omit<Casting, 'command_id'>,
  vote: NewVote,
) => {
  const own = votingGroups(gate, command.caller, subject.now, people)
  const group = groupOfVote({ policy: gate.policy, votes: others }, eligibleGroups(gate), own, vote.as_group)
  const { in_place_of } = command.actor
  const cast = { user_id: command.caller.user_id, decision: vote.decision, group_key: group, in_place_of }
  return { group, status: outcomeOfVotes({ policy: gate.policy, votes: [...others, cast] }) }
}

/** Returns others' approvals that no longer count. */
const lostOf = async (
  deps: Uses<'lookback_s'>,
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

/** Takes an approval back: a new round with the others' votes, rejected at once if the rejections are enough. */
export const takeBack = (tx: Tx, { command, row, subject, command_id }: Omit<Casting, 'people'>, vote: NewVote) => {
  const { gate } = row
  const round = gate.round + 1
  const others = gateFacts(row).votes.filter(({ user_id }) => user_id !== command.caller.user_id)
  const { in_place_of } = command.actor
  const own = { user_id: command.caller.user_id, decision: 'reject' as const, group_key: null, in_place_of }
  const outcome = outcomeOfVotes({ policy: gate.policy, votes: [...others, own] })
  const status: GateStatus = outcome === 'rejected' ? outcome : 'waiting'
  const decided =
    status === 'rejected'
      ? decidedColumns(command, command_id, status, gate.digest)
      : { status, ...afresh(gate.policy.deadline_s) }
  const writes = [
    swapOf(tx, row, { round, ...decided }),
    carryVotes(tx, gate.operation_id, gate.gate_id, gate.round, command.caller.user_id),
    saveVote(tx, { ...voteRow(command, row, command_id, vote), round, group_key: null }),
  ]
  const kept = others.map(({ user_id }) => user_id)
  const outcomeNow = { gate_id: gate.gate_id, round, status, vote, group: null, kept }
  return { ...decisionOf(command, row, command_id, outcomeNow), head: subject.head, writes }
}

export const bypass = (tx: Tx, { command, row, subject, command_id }: Omit<Casting, 'people'>, reason: string) => {
  const { gate } = row
  const { gate_id, round } = gate
  const fact = {
    event: 'gate.bypassed' as const,
    at: subject.now,
    about: `${command.actor.name}: ${row.operation.title}, ${gate_id}`,
    path: `/operations/${gate.operation_id}/gates/${encodeURIComponent(gate_id)}`,
  }
  const exception = { kind: 'gate_bypassed', gate_id, actor: command.actor, at: subject.now, reason }
  return {
    payload: { gate_id, round, status: 'bypassed', digest: gate.digest },
    head: subject.head,
    writes: [
      swapOf(tx, row, decidedColumns(command, command_id, 'bypassed', gate.digest)),
      insertRow(tx, notify_security, { key: `bypass ${command_id}`, user_id: ADMINISTRATORS, fact }),
    ],
    events: [
      {
        ...said(command, gate_id, command_id),
        type: 'gate.bypassed',
        reason,
        data: { round, digest: gate.digest },
        evidence: {
          kind: 'exception' as const,
          statement: `${command.actor.name} bypassed gate ${gate_id} by break-glass`,
          subject: { type: 'gate', id: gate_id, round, status: 'bypassed', digest: gate.digest },
          subject_digest: digest(exception),
        },
      },
    ],
    set: {
      open_gates: sql`greatest(${operations.open_gates} - 1, 0)`,
      exceptions: [...subject.exceptions, { ...exception, command_id }],
    },
    undo: { gates: [undoOf(row)] },
    effect: { gate_id, round, status: 'bypassed' },
  }
}

const decidedColumns = (command: Command, command_id: string, status: GateStatus, approved: string) => ({
  status,
  approved_digest: status === 'approved' || status === 'bypassed' ? approved : null,
  decided_by: command.actor,
  decided_at: NOW,
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

/** A faster decision was seen when the row was locked, and the rules have refused this one. */
const swapOf = (tx: Tx, { gate: { operation_id, gate_id, status, round } }: GateRow, set: Record<string, unknown>) =>
  swapping(tx, { operation_id, gate_id, from: { status, round }, set })

type Outcome = {
  gate_id: string
  round: number
  status: GateStatus
  vote: NewVote
  group: string | null
  /** After a vote was taken back: the voters whose votes count in the new round. */
  kept?: string[]
}

const decisionOf = (command: GateCommand, row: GateRow, command_id: string, outcome: Outcome) => {
  const { gate_id, round, status, vote, group, kept } = outcome
  const { gate } = row
  const { batch } = vote
  const cast = { round, decision: vote.decision, group, digest: gate.digest, ...(batch && { batch }) }
  const together = batch ? `, one of ${batch.size} decided together` : ''
  const verb = vote.decision === 'approve' ? 'approved' : 'rejected'
  const events: TimelineEvent[] = [
    {
      ...said(command, gate_id, command_id),
      type: 'gate.voted',
      reason: vote.comment,
      data: cast,
      evidence: {
        kind: 'vote',
        statement: `${command.actor.name} ${verb} gate ${gate_id}, round ${round}${together}`,
        subject: {
          type: 'gate',
          id: gate_id,
          ...cast,
          voter: command.caller.user_id,
          ...(vote.signature && { signature: vote.signature }),
        },
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

/** The columns that a withdrawal restores; the round only grows, and the deadline starts again. */
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
