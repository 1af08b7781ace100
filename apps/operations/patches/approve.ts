import type { Tx } from '../../../db/client.ts'
import type { TimelineEvent } from '../../../db/operations/facts/state.ts'
import { listTargets } from '../../../db/operations/leases/drift.ts'
import { takeMoreLeases } from '../../../db/operations/leases/rows.ts'
import { writeRevision } from '../../../db/operations/patches/apply.ts'
import { closePatch } from '../../../db/operations/patches/close.ts'
import {
  getPatch,
  liftHolds,
  listOpenPatches,
  movePatch,
  type PatchRow,
  type Revision,
  removeVotes,
  saveVote,
} from '../../../db/operations/patches/rows.ts'
import type { EvidenceSubject } from '../../../db/operations/tables/evidence.ts'
import { NOW } from '../../../db/rows.ts'
import { refuseDigestOf } from '../../../workflows/operation/rules/patches.ts'
import type { ApprovePatchBody, PatchChange } from '../../shared/contracts/operations/patches.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { rulesOf } from '../../shared/evidence/rules.ts'
import { askHeads } from '../catalog/heads.ts'
import { type Decision, lockVisible, type Steps, type Subject } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import { type Proof, signatureOf, withProof } from '../command/vote-signature.ts'
import type { CommandDeps, PlanningDeps, ReplanDeps, Uses } from '../deps.ts'
import { refuseDrifted } from '../operations/control.ts'
import { wholeOf } from '../planner/leases.ts'
import {
  lookAhead,
  notApplicable,
  type Outlook,
  outcomeOfPatch,
  refuseBound,
  refuseTouched,
  revisionOf,
} from '../plans/ahead.ts'
import { refuseLeaseHeld } from '../plans/leases.ts'
import { refused, throwIfRefused } from '../policies/authority.ts'
import { groupsLeft, type People, refuseTainted, withPeople } from '../policies/footing.ts'
import {
  checkBatch,
  evidenceOf,
  faultsOf,
  onPatch,
  type PatchCommand,
  refuseBase,
  said,
  soundOutlook,
  voteEvent,
} from './decide.ts'
import { lostPatchVotes, patchFooting, voidedPatchVotes } from './voters.ts'

/**
 * A vote for a patch, and its application once every gate's rule is met. The same transaction writes the graph of the
 * next revision. The patch counts as applied when the engine has adopted that revision.
 */
export const approvePatch = async (
  deps: CommandDeps & ReplanDeps & Uses<'lookback_s'>,
  command: PatchCommand,
  body: ApprovePatchBody,
) => {
  try {
    const approve = (proof?: Proof) =>
      withPeople(deps.trust, (people) => runCommand(deps, command, approveSteps(deps, command, body, people, proof)))
    return await (body.assertion ? withProof(deps.trust, command.caller, body.assertion, approve) : approve())
  } catch (error) {
    // The refusal rolled its transaction back, so its finding is written separately.
    if (error instanceof AppError && error.category === 'patch_not_applicable' && !command.dry_run)
      await setAside(deps, command, error.code)
    throw error
  }
}

const approveSteps = (
  deps: ReplanDeps & Uses<'lookback_s'>,
  command: PatchCommand,
  body: ApprovePatchBody,
  people: People,
  proof?: Proof,
): Steps<Subject> => {
  const heads = askHeads(deps, () => listTargets(deps.db, command.operation_id))
  const steps = onPatch(deps, command, 'approve', async (tx, subject, patch, command_id) => {
    checkBatch(deps, subject, patch, 'approve', body.batch)
    const footing = patchFooting(subject, patch, deps.lookback_s)
    throwIfRefused(refuseTainted(command.caller, footing))
    throwIfRefused(refuseDigestOf(patch.digest, body.reviewed_digest))
    if (body.comment === undefined && patch.required.some((policy) => policy.comment_on_approve))
      throw wrongAt('/comment', 'is required by a policy', {
        as: 'required',
        detail: 'A gate that the patch touches requires a comment.',
      })
    throwIfRefused(refuseBase(patch.base_revision, subject.plan_revision))
    heads.require()
    const outlook = await soundOutlook(deps, tx, subject, patch.changes as PatchChange[], patch.patch_id)
    if (outlook.result_hash !== patch.result_hash)
      throw refused(notApplicable('unsound', 'The effect of the patch has changed since your review.'))
    const { user_id } = command.caller
    const groups = groupsLeft(command.caller.groups, { ...command.caller, group_keys: command.caller.groups }, footing)
    const { operation_id, patch_id: id, digest, required } = patch
    const voted = { operation_id, type: 'patch' as const, id, round: null, digest, user_id }
    const signs = !body.dry_run && (body.assertion || required.some(({ signature }) => signature === 'required'))
    const signature = signs ? await signatureOf(tx, voted, body.assertion, proof) : undefined
    const vote = { user_id, decision: 'approve' as const, groups }
    const others = patch.votes.filter((other) => other.user_id !== user_id && other.decision === 'approve')
    const complete = outcomeOfPatch(patch.required, [...others, vote]) === 'approved'
    const lost = complete ? await lostPatchVotes(tx, subject, others, people, footing) : []
    // Someone who has changed groups meanwhile counts only for those of the vote that are left.
    const left = others
      .filter((other) => !lost.some((gone) => gone.user_id === other.user_id))
      .map((other) => ({ ...other, groups: groupsLeft(other.groups, people.get(other.user_id), footing) }))
    const status = outcomeOfPatch(patch.required, [...left, vote])
    const own = patch.votes.find((other) => other.user_id === user_id)
    const effect = { patch_id: patch.patch_id, status }
    if (own?.decision === 'approve' && status === 'awaiting_approval' && lost.length === 0)
      return { payload: null, events: [], effect }
    const gone = lost.map((voter) => voter.user_id)
    if (gone.length > 0) await removeVotes(tx, subject.operation_id, patch.patch_id, gone)
    await saveVote(tx, {
      ...vote,
      operation_id: subject.operation_id,
      patch_id: patch.patch_id,
      comment: body.comment ?? null,
      digest: patch.digest,
      actor: command.actor,
      command_id,
    })
    const events = [
      ...voidedPatchVotes(patch.patch_id, lost),
      voteEvent(command, command_id, patch, 'approve', body, signature),
    ]
    if (status === 'awaiting_approval') return { payload: null, events, effect }
    return apply(deps, tx, { command, subject, patch, outlook, command_id, voted: events })
  })
  return { ...steps, ahead: heads.ahead }
}

/** Returns the evidence of an approved patch: the rules that its votes satisfied, and those of gates that it adds. */
const approvedSubject = (
  { required, proposer_id }: PatchRow,
  { gates }: Pick<Revision, 'gates'>,
  { running }: Outlook,
): Partial<EvidenceSubject> => {
  const known = new Set(running.gates.map(({ gate_id }) => gate_id))
  return {
    status: 'approved',
    proposer: proposer_id,
    required: required.map((policy) => rulesOf({ gate_id: policy.key, kind: 'approval', policy })),
    rules: gates.filter(({ gate_id }) => !known.has(gate_id)).map(rulesOf),
  }
}

type Applying = {
  command: PatchCommand
  subject: Subject
  patch: PatchRow
  outlook: Outlook
  command_id: string
  voted: TimelineEvent[]
}

const apply = async (
  deps: PlanningDeps,
  tx: Tx,
  { command, subject, patch, outlook, command_id, voted }: Applying,
): Promise<Omit<Decision, 'object' | 'before'>> => {
  const { operation_id } = subject
  const { patch_id } = patch
  const revision = await revisionOf(tx, subject, patch, outlook)
  const written = await writeRevision(tx, revision)
  const { plan_revision, generations, gates, undo } = written
  await movePatch(tx, operation_id, patch_id, 'awaiting_approval', {
    status: 'approved',
    applied_revision: plan_revision,
    decided_by: command.actor,
    decided_at: NOW,
  })
  await refuseLeaseHeld(tx, command.caller, await takeMoreLeases(tx, subject, leasesFor(outlook)))
  // Its new steps begin on the current targets: they were reviewed and approved that way.
  await refuseDrifted(deps, tx, subject, [...outlook.patched.touched, ...outlook.patched.added])
  const [max_parallel, risk_level] = [revision.max_parallel.after, revision.risk_level.after]
  const overtaken = await overtake(deps, tx, { ...subject, plan_revision, max_parallel, risk_level })
  const by = said(command, command_id)
  return {
    payload: { patch_id, plan_revision, generations, gates, closed: overtaken },
    events: [
      ...voted,
      {
        ...by,
        type: 'patch.approved',
        data: { plan_revision, result_hash: outlook.result_hash },
        evidence: evidenceOf(
          `Patch ${patch_id} was approved; the graph is revision ${plan_revision}`,
          patch_id,
          patch.digest,
          approvedSubject(patch, revision, outlook),
        ),
      },
      ...written.events.map((event) => ({ ...by, ...event })),
      ...overtaken.map((other) => ({
        ...by,
        type: 'patch.not_applicable',
        patch_id: other,
        data: { why: 'base_revision_moved' },
      })),
    ],
    undo,
    // The other gates that moved are passed by this approval.
    effect: {
      ...{ patch_id, status: 'approved', plan_revision },
      rearmed_gates: Object.keys(gates).filter((id) => gates[id]?.status === 'waiting'),
    },
  }
}

/** Returns the leases of the targets that the new or changed nodes act on. */
const leasesFor = ({ patched: { nodes, touched, added }, targets }: Outlook) => {
  const concerned = new Set([...touched, ...added])
  const aims = new Set(nodes.flatMap(({ node_id, target_id }) => (concerned.has(node_id) ? [target_id] : [])))
  return wholeOf(targets.filter(({ resource_id }) => aims.has(resource_id)))
}

/** Ends other open patches, which were based on the old graph; proposes their changes on the new graph if sound. */
const overtake = async (deps: PlanningDeps, tx: Tx, subject: Subject): Promise<string[]> => {
  const others = await listOpenPatches(tx, subject.operation_id)
  for (const other of others) {
    await liftHolds(tx, subject.operation_id, other.patch_id)
    const outlook = await lookAhead(deps, tx, subject, other.changes as PatchChange[])
    const sound = faultsOf(outlook).length === 0 && !refuseTouched(outlook) && !refuseBound(subject, outlook)
    await movePatch(tx, subject.operation_id, other.patch_id, 'awaiting_approval', {
      status: 'not_applicable',
      status_reason: 'base_revision_moved',
      rebase: sound ? { base_revision: subject.plan_revision, changes: other.changes } : null,
    })
  }
  return others.map(({ patch_id }) => patch_id)
}

/** Ends a patch that came too late, and releases the nodes that it held. */
const setAside = async (deps: Uses<'db' | 'nats' | 'policies'>, command: PatchCommand, code: string): Promise<void> => {
  await deps.db.transaction(async (tx) => {
    const subject = await lockVisible(deps, tx, command)
    const patch = await getPatch(tx, subject.operation_id, command.patch_id)
    if (patch?.status !== 'awaiting_approval') return
    await closePatch(tx, subject.operation_id, command.patch_id, 'not_applicable', code)
  })
  deps.nats.wake('operations')
}
