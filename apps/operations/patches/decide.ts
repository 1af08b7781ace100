import type { Tx } from '../../../db/client.ts'
import type { AcceptedCommand } from '../../../db/operations/commands/rows.ts'
import type { TimelineEvent } from '../../../db/operations/facts/state.ts'
import { liftHolds, movePatch, type PatchRow, saveVote } from '../../../db/operations/patches/rows.ts'
import type { EvidenceSubject } from '../../../db/operations/tables/evidence.ts'
import { NOW } from '../../../db/rows.ts'
import { refusePatchDecision } from '../../../workflows/operation/rules/patches.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Batch } from '../../shared/contracts/operations/common.ts'
import type { VoteSignature } from '../../shared/contracts/operations/gates.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type { PatchChange, RejectPatchBody } from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, type Violation } from '../../shared/errors.ts'
import { type Command, checkIfMatch, type Decision, lockVisible, type Steps, type Subject } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import type { CommandDeps, PolicyDeps, ReplanDeps, Uses } from '../deps.ts'
import { inRankOrder } from '../graph/graph.ts'
import { refuseOn } from '../operations/control.ts'
import { isEmpty, resultHash } from '../planner/patch.diff.ts'
import { SHOWN_VIOLATIONS, secretViolations } from '../planner/plan.ts'
import { lookAhead, notApplicable, type Outlook, refuseBound, refuseTouched, requirePatch } from '../plans/ahead.ts'
import { refuseByPolicy, throwIfRefused } from '../policies/authority.ts'
import { aloneBy, refuseTogether, type Verdict } from './bulk.ts'
import { patchObject, readPatch, rejectAction } from './view.ts'

export type PatchCommand = Command & { patch_id: string; caller: Caller }

export const refuseBase = (base_revision: number, plan_revision: number): RefusalCode | undefined =>
  base_revision === plan_revision
    ? undefined
    : notApplicable(
        'base_revision_moved',
        `You reviewed revision ${base_revision}, but the graph is at revision ${plan_revision}.`,
        { plan_revision },
      )

/** Returns what the changes would lead to now. Throws the first reason why they cannot; `own` may hold the nodes. */
export const soundOutlook = async (
  deps: ReplanDeps,
  tx: Tx,
  subject: Subject,
  changes: readonly PatchChange[],
  own?: string,
): Promise<Outlook> => {
  const outlook = await lookAhead(deps, tx, subject, changes)
  throwIfRefused(refuseTouched(outlook, own))
  refuseUnsound(outlook)
  throwIfRefused(refuseBound(subject, outlook))
  refuseSecretsOf(deps, outlook)
  return outlook
}

/** Without an effect, a patch would only hold nodes and ask people in vain. */
const UNCHANGED: Violation = { pointer: '/changes', code: 'nothing_changes', message: 'leave the graph as it is' }

const refuseUnsound = (outlook: Outlook): void => {
  const violations = faultsOf(outlook)
  const [first] = violations
  if (!first) return
  const more = violations.length > 1 ? `, and ${violations.length - 1} more` : ''
  throw new AppError(
    'patch_not_applicable',
    'unsound',
    first === UNCHANGED
      ? 'The changes leave the graph as it is.'
      : `The resulting graph is not valid: ${first.pointer} ${first.message}${more}.`,
    { violations: violations.slice(0, SHOWN_VIOLATIONS) },
  )
}

/** Every reason why the resulting graph could not be proposed. Only a graph that shows no change is compared by hash. */
export const faultsOf = ({ running, patched, result_hash, diff_graph }: Outlook): Violation[] => {
  const before = () => resultHash({ ...running, nodes: inRankOrder(running.nodes), gates: bare(running) })
  return patched.violations.length === 0 && isEmpty(diff_graph) && result_hash === before()
    ? [UNCHANGED]
    : patched.violations
}

const bare = ({ gates }: Outlook['running']) => gates.map(({ status: _, ...gate }) => gate)

/** A pool may resolve only secrets that the plan could have named: the preview's rule, applied to the new steps. */
const refuseSecretsOf = ({ mayResolve }: Uses<'mayResolve'>, { patched }: Outlook): void => {
  const brought = new Set([...patched.touched, ...patched.added])
  const violations = secretViolations(
    patched.nodes.filter(({ node_id }) => brought.has(node_id)),
    mayResolve,
  )
  const [first] = violations
  if (first)
    throw new AppError('policy_denied', 'secret_not_allowed', `${first.pointer}: ${first.message}.`, {
      violations: violations.slice(0, SHOWN_VIOLATIONS),
      hint: 'Use another pool, or have the secret added to the executor policy of this one.',
    })
}

/** Rejects a patch; if its proposer does, it is withdrawn. The nodes that it held resume. */
export const rejectPatch = (deps: CommandDeps & PolicyDeps, command: PatchCommand, body: RejectPatchBody) =>
  runCommand(
    deps,
    command,
    onPatch(deps, command, 'reject', async (tx, subject, patch, command_id) => {
      checkBatch(deps, subject, patch, 'reject', body.batch)
      const { operation_id } = subject
      const own = patch.proposer_id === command.caller.user_id
      const status = own ? 'withdrawn' : 'rejected'
      const { patch_id } = patch
      const decided = { decided_by: command.actor, decided_at: NOW }
      await movePatch(tx, operation_id, patch_id, 'awaiting_approval', { status, ...decided })
      await liftHolds(tx, operation_id, patch_id)
      if (!own)
        await saveVote(tx, {
          operation_id,
          patch_id,
          user_id: command.caller.user_id,
          decision: 'reject',
          groups: command.caller.groups,
          comment: body.comment,
          digest: patch.digest,
          actor: command.actor,
          command_id,
        })
      const closed = { ...said(command, command_id), type: `patch.${status}`, reason: body.comment }
      return {
        payload: { patch_id },
        events: [
          ...(own ? [] : [voteEvent(command, command_id, patch, 'reject', body)]),
          {
            ...closed,
            evidence: evidenceOf(`${command.actor.name}: patch ${patch_id} is ${status}`, patch_id, patch.digest),
          },
        ],
        effect: { patch_id, status },
      }
    }),
  )

/** Allows a vote in a batch only where such votes are permitted. */
export const checkBatch = (
  { config }: Uses<'config'>,
  { risk_level }: Subject,
  { required }: PatchRow,
  verdict: Verdict,
  batch: Batch | undefined,
): void => {
  if (batch === undefined) return
  throwIfRefused(refuseTogether(aloneBy(required, risk_level, verdict, config.OPERATIONS__GATES__BULK_APPROVE)))
}

type OnPatch = (
  tx: Tx,
  subject: Subject,
  patch: PatchRow,
  command_id: string,
) => Promise<Omit<Decision, 'object' | 'before'>>

/** The frame of a decision on a patch: lock, policy, state, then `decide`. */
export const onPatch = (
  deps: PolicyDeps & Uses<'db'>,
  command: PatchCommand,
  verb: 'approve' | 'reject',
  decide: OnPatch,
): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    const patch = await requirePatch(tx, subject.operation_id, command.patch_id)
    const action = verb === 'approve' ? 'patch.approve' : rejectAction(command.caller, patch)
    throwIfRefused(refuseByPolicy(deps, command.caller, action, patchObject(subject, patch), subject.places))
    await refuseOn(deps, tx, command, subject, refusePatchDecision(subject.facts, patch, deps.clock.now()))
    checkIfMatch(command.if_match, subject.revision)
    return {
      ...(await decide(tx, subject, patch, command_id)),
      object: `patch:${subject.operation_id}/${patch.patch_id}`,
      before: { status: patch.status, digest: patch.digest },
    }
  },
  ...answered(deps, command),
})

export const answered = (
  deps: Uses<'clock' | 'db' | 'policies'>,
  { caller, operation_id, patch_id }: PatchCommand,
) => ({
  render: async ({ command }: AcceptedCommand) => {
    // A proposal's id is that of its command, so a repeat finds the first proposal.
    const id = command.kind === 'patch_proposed' ? command.command_id : patch_id
    const { view, operation_status } = await readPatch(deps, caller, operation_id, id)
    return { ...view, operation_status }
  },
  allowed: async () => (await readPatch(deps, caller, operation_id, patch_id)).view.allowed_actions,
})

export const said = (command: PatchCommand, command_id: string) => ({
  ...pick(command, 'actor', 'reason', 'patch_id'),
  command_id,
})

export const voteEvent = (
  command: PatchCommand,
  command_id: string,
  patch: PatchRow,
  decision: 'approve' | 'reject',
  { comment = null, batch }: { comment?: string | null | undefined; batch?: Batch | undefined },
  signature?: VoteSignature,
): TimelineEvent => ({
  ...said(command, command_id),
  type: 'patch.voted',
  reason: comment,
  data: { decision, digest: patch.digest },
  evidence: {
    kind: 'vote',
    statement: `${command.actor.name} ${decision === 'approve' ? 'approved' : 'rejected'} patch ${patch.patch_id}${batch ? `, one of ${batch.size} decided together` : ''}`,
    subject: {
      type: 'patch',
      id: patch.patch_id,
      decision,
      digest: patch.digest,
      voter: command.caller.user_id,
      groups: command.caller.groups,
      ...(signature && { signature }),
      ...(batch && { batch }),
    },
    subject_digest: digest({ patch_id: patch.patch_id, decision, comment, digest: patch.digest }),
  },
})

export const evidenceOf = (
  statement: string,
  patch_id: string,
  subject_digest: string,
  more: Partial<EvidenceSubject> = {},
) => ({ kind: 'patch' as const, statement, subject: { type: 'patch', id: patch_id, ...more }, subject_digest })
