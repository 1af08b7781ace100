import { sql } from 'drizzle-orm'
import type { Tx } from '../../../db/client.ts'
import type { AcceptedCommand } from '../../../db/operations/commands/rows.ts'
import type { TimelineEvent } from '../../../db/operations/facts/timeline.ts'
import { listTargets } from '../../../db/operations/leases/drift.ts'
import { writeRevision } from '../../../db/operations/patches/apply.ts'
import { closePatch } from '../../../db/operations/patches/close.ts'
import {
  getPatch,
  holdNodes,
  insertPatch,
  liftHolds,
  listOpenPatches,
  movePatch,
  type PatchRow,
  removeVotes,
  saveVote,
} from '../../../db/operations/patches/rows.ts'
import { type EvidenceSubject, rulesOf } from '../../../db/operations/tables/evidence.ts'
import { refuseDigestOf, refusePatch, refusePatchDecision } from '../../../workflows/operation/rules.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { RefusalCode } from '../../shared/contracts/operations/graph.ts'
import type {
  ApprovePatchBody,
  PatchChange,
  ProposeBody,
  RejectPatchBody,
} from '../../shared/contracts/operations/patches.ts'
import { digest } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { askHeads } from '../catalog/heads.ts'
import type { Command, Decision, Steps } from '../command/command.ts'
import { runCommand } from '../command/run.ts'
import { checkIfMatch, lockVisible, type Subject } from '../command/subject.ts'
import type { OperationsDeps } from '../deps.ts'
import { refuseDrifted, refuseOn } from '../operations/control.ts'
import { secretViolations } from '../planner/plan.ts'
import {
  lookAhead,
  notApplicable,
  type Outlook,
  outcomeOfPatch,
  patchDigest,
  refuseBound,
  refuseTouched,
  requirePatch,
  revisionOf,
} from '../plans/ahead.ts'
import { operationObject, refuseByPolicy, refused, throwIfRefused } from '../policies/authority.ts'
import { type People, refuseTainted, withPeople } from '../policies/voters.ts'
import { patchObject, readPatch, rejectAction } from './view.ts'
import { lostPatchVotes, patchFooting, voidedPatchVotes } from './voters.ts'

export type PatchCommand = Command & { patch_id: string; caller: Caller }
const EXPIRES_S = 86_400
const SHOWN_VIOLATIONS = 100

/** Proposes a patch: what it would change is held from this moment, until it is decided (operations.md 2.6). */
export const proposeSteps = (deps: OperationsDeps, command: PatchCommand, body: ProposeBody): Steps<Subject> => {
  const heads = askHeads(deps, () => listTargets(deps.db, command.operation_id))
  return {
    ahead: heads.ahead,
    lock: (tx) => lockVisible(deps, tx, command),
    decide: async (tx, subject, command_id) => {
      const { operation_id, plan_revision } = subject
      const { patch_id, actor, caller } = command
      const { base_revision, changes } = body
      throwIfRefused(
        refuseByPolicy(deps, caller, 'patch.propose', { ...operationObject(subject), type: 'Patch' }, subject.places),
      )
      refuseOn(deps, command, subject, refusePatch(subject.facts))
      checkIfMatch(command.if_match, subject.revision)
      throwIfRefused(refuseBase(base_revision, plan_revision))
      heads.require()
      const outlook = await lookAhead(deps, tx, subject, changes)
      throwIfRefused(refuseTouched(outlook))
      refuseUnsound(outlook)
      throwIfRefused(refuseBound(subject, outlook))
      refuseSecretsOf(deps, outlook)
      const { patched, diff_graph, result_hash, rearmed } = outlook
      const { touched } = patched
      const patch_digest = patchDigest(patch_id, base_revision, changes, result_hash)
      await insertPatch(tx, {
        operation_id,
        patch_id,
        base_revision,
        changes: changes as Record<string, unknown>[],
        reason: body.reason,
        ticket: body.ticket ?? null,
        proposer: actor,
        proposer_id: caller.user_id,
        digest: patch_digest,
        result_hash,
        diff_graph,
        held_nodes: touched,
        rearmed_gates: rearmed,
        required: patched.required,
        expires_at: sql`clock_timestamp() + make_interval(secs => ${body.expires_in_s ?? EXPIRES_S})` as never,
      })
      if (touched.length > 0 && (await holdNodes(tx, operation_id, touched, patch_id)) !== touched.length)
        throw refused(notApplicable('patch_overlap', 'Another patch took one of these nodes a moment ago.'))
      const effect = {
        patch_id,
        diff_graph,
        held_nodes: touched,
        rearmed_gates: rearmed,
        required: patched.required,
        result_hash,
      }
      return {
        payload: touched.length > 0 ? { patch_id, node_ids: touched } : null,
        events: [
          {
            ...said(command, command_id),
            type: 'patch.awaiting_approval',
            data: { base_revision, digest: patch_digest, held_nodes: touched },
            evidence: evidenceOf(`${actor.name} proposed patch ${patch_id}`, patch_id, patch_digest, {
              status: 'awaiting_approval',
              proposer: caller.user_id,
              digest: patch_digest,
            }),
          },
        ],
        effect,
        object: `patch:${operation_id}/${patch_id}`,
        before: { plan_revision },
      }
    },
    ...answered(deps, command),
    allowed: async () => [],
    location: (operation_id, command_id) => `/v1/operations/${operation_id}/patches/${command_id}`,
  }
}

const refuseBase = (base_revision: number, plan_revision: number): RefusalCode | undefined =>
  base_revision === plan_revision
    ? undefined
    : notApplicable('base_revision_moved', `You read revision ${base_revision}; the graph is at ${plan_revision}.`, {
        plan_revision,
      })

const refuseUnsound = ({ patched: { violations } }: Outlook): void => {
  const [first] = violations
  if (!first) return
  throw new AppError(
    'patch_not_applicable',
    'unsound',
    `The graph could not run: ${first.pointer} ${first.message}${violations.length > 1 ? `, and ${violations.length - 1} more` : ''}.`,
    { status: 422, violations: violations.slice(0, SHOWN_VIOLATIONS) },
  )
}

/** A pool may not resolve what the plan itself could not have named: the rule of a preview, for what the patch brings. */
const refuseSecretsOf = ({ mayResolve }: OperationsDeps, { patched }: Outlook): void => {
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

/**
 * A vote for a patch, and its application when every gate's rule is met: the graph of the next revision is written in
 * the same transaction; the patch counts as applied when the engine stands on it.
 */
export const approvePatch = async (deps: OperationsDeps, command: PatchCommand, body: ApprovePatchBody) => {
  try {
    return await withPeople(deps.trust, (people) =>
      runCommand(deps, command, approveSteps(deps, command, body, people)),
    )
  } catch (error) {
    // The refusal undid its transaction; what it found out is written down apart.
    if (error instanceof AppError && error.category === 'patch_not_applicable' && !command.dry_run)
      await setAside(deps, command, error.code)
    throw error
  }
}

const approveSteps = (
  deps: OperationsDeps,
  command: PatchCommand,
  body: ApprovePatchBody,
  people: People,
): Steps<Subject> => {
  const heads = askHeads(deps, () => listTargets(deps.db, command.operation_id))
  const steps = onPatch(deps, command, 'approve', async (tx, subject, patch, command_id) => {
    const footing = patchFooting(subject, patch, deps.lookback_s)
    throwIfRefused(refuseTainted(command.caller, footing))
    throwIfRefused(refuseDigestOf(patch.digest, body.reviewed_digest))
    if (body.comment === undefined && patch.required.some((policy) => policy.comment_on_approve))
      throw new AppError('validation_error', 'schema_violation', 'A gate that the patch touches asks for a comment.', {
        status: 400,
        violations: [{ pointer: '/comment', code: 'required', message: 'is required by a policy' }],
      })
    throwIfRefused(refuseBase(patch.base_revision, subject.plan_revision))
    heads.require()
    const outlook = await lookAhead(deps, tx, subject, patch.changes as PatchChange[])
    throwIfRefused(refuseTouched(outlook, patch.patch_id))
    refuseUnsound(outlook)
    throwIfRefused(refuseBound(subject, outlook))
    refuseSecretsOf(deps, outlook)
    if (outlook.result_hash !== patch.result_hash)
      throw refused(notApplicable('unsound', 'The patch would not do any more what was read.'))
    const { user_id, groups } = command.caller
    const vote = { user_id, decision: 'approve' as const, groups }
    const others = patch.votes.filter((other) => other.user_id !== user_id && other.decision === 'approve')
    const complete = outcomeOfPatch(patch.required, [...others, vote]) === 'approved'
    const lost = complete ? await lostPatchVotes(tx, subject, others, people, footing) : []
    const left = others.filter((other) => !lost.some((gone) => gone.user_id === other.user_id))
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
    const voted = [
      ...voidedPatchVotes(patch.patch_id, lost),
      voteEvent(command, command_id, patch, 'approve', body.comment ?? null),
    ]
    if (status === 'awaiting_approval') return { payload: null, events: voted, effect }
    return apply(deps, tx, { command, subject, patch, outlook, command_id, voted })
  })
  return { ...steps, ahead: heads.ahead }
}

/** What evidence says of an approved patch: the rules that its votes satisfied, and those of gates that it brings. */
const approvedSubject = (
  { required, proposer_id }: PatchRow,
  { gates, running }: Outlook,
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
  deps: OperationsDeps,
  tx: Tx,
  { command, subject, patch, outlook, command_id, voted }: Applying,
): Promise<Omit<Decision, 'object' | 'before'>> => {
  const { operation_id } = subject
  const { patch_id } = patch
  const written = await writeRevision(tx, await revisionOf(tx, subject, patch, outlook))
  const { plan_revision, generations, gates, undo } = written
  await movePatch(tx, operation_id, patch_id, 'awaiting_approval', {
    status: 'approved',
    applied_revision: plan_revision,
    decided_by: command.actor,
    decided_at: sql`clock_timestamp()` as never,
  })
  // What it brings begins on the targets as they are now: it was read and approved so.
  await refuseDrifted(deps, tx, subject, [...outlook.patched.touched, ...outlook.patched.added])
  const overtaken = await overtake(deps, tx, subject, plan_revision)
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
          approvedSubject(patch, outlook),
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
    effect: { patch_id, status: 'approved', plan_revision, rearmed_gates: Object.keys(gates) },
  }
}

/** Other open patches stood on the old graph: they end, with the same changes on the new one where those are sound. */
const overtake = async (deps: OperationsDeps, tx: Tx, subject: Subject, plan_revision: number): Promise<string[]> => {
  const others = await listOpenPatches(tx, subject.operation_id)
  for (const other of others) {
    await liftHolds(tx, subject.operation_id, other.patch_id)
    const outlook = await lookAhead(deps, tx, subject, other.changes as PatchChange[])
    const sound = outlook.patched.violations.length === 0 && !refuseTouched(outlook) && !refuseBound(subject, outlook)
    await movePatch(tx, subject.operation_id, other.patch_id, 'awaiting_approval', {
      status: 'not_applicable',
      status_reason: 'base_revision_moved',
      rebase: sound ? { base_revision: plan_revision, changes: other.changes } : null,
    })
  }
  return others.map(({ patch_id }) => patch_id)
}

/** Rejects a patch; by its proposer it is withdrawn. What it held goes on. */
export const rejectPatch = (deps: OperationsDeps, command: PatchCommand, body: RejectPatchBody) =>
  runCommand(
    deps,
    command,
    onPatch(deps, command, 'reject', async (tx, subject, patch, command_id) => {
      const { operation_id } = subject
      const own = patch.proposer_id === command.caller.user_id
      const status = own ? 'withdrawn' : 'rejected'
      const { patch_id } = patch
      const decided = { decided_by: command.actor, decided_at: sql`clock_timestamp()` as never }
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
          ...(own ? [] : [voteEvent(command, command_id, patch, 'reject', body.comment)]),
          {
            ...closed,
            evidence: evidenceOf(`${command.actor.name}: patch ${patch_id} is ${status}`, patch_id, patch.digest),
          },
        ],
        effect: { patch_id, status },
      }
    }),
  )

type OnPatch = (
  tx: Tx,
  subject: Subject,
  patch: PatchRow,
  command_id: string,
) => Promise<Omit<Decision, 'object' | 'before'>>

/** The frame of a decision on a patch: lock, policy, state, then what `decide` says. */
const onPatch = (
  deps: OperationsDeps,
  command: PatchCommand,
  verb: 'approve' | 'reject',
  decide: OnPatch,
): Steps<Subject> => ({
  lock: (tx) => lockVisible(deps, tx, command),
  decide: async (tx, subject, command_id) => {
    const patch = await requirePatch(tx, subject.operation_id, command.patch_id)
    const action = verb === 'approve' ? 'patch.approve' : rejectAction(command.caller, patch)
    throwIfRefused(refuseByPolicy(deps, command.caller, action, patchObject(subject, patch), subject.places))
    refuseOn(deps, command, subject, refusePatchDecision(subject.facts, patch))
    checkIfMatch(command.if_match, subject.revision)
    return {
      ...(await decide(tx, subject, patch, command_id)),
      object: `patch:${subject.operation_id}/${patch.patch_id}`,
      before: { status: patch.status, digest: patch.digest },
    }
  },
  ...answered(deps, command),
})

const answered = (deps: OperationsDeps, { caller, operation_id, patch_id }: PatchCommand) => ({
  render: async ({ command }: AcceptedCommand) => {
    // A proposal's id is that of its command: a repeat finds the first one's.
    const id = command.kind === 'patch_proposed' ? command.command_id : patch_id
    const { view, operation_status } = await readPatch(deps, caller, operation_id, id)
    return { ...view, operation_status }
  },
  allowed: async () => (await readPatch(deps, caller, operation_id, patch_id)).view.allowed_actions,
})

/** A patch that turned out to come too late ends, and lets go of what it held. */
const setAside = async (deps: OperationsDeps, command: PatchCommand, code: string): Promise<void> => {
  await deps.db.transaction(async (tx) => {
    const subject = await lockVisible(deps, tx, command)
    const patch = await getPatch(tx, subject.operation_id, command.patch_id)
    if (patch?.status !== 'awaiting_approval') return
    await closePatch(tx, subject.operation_id, command.patch_id, 'not_applicable', code)
  })
  deps.nats.wake('operations')
}

const said = (command: PatchCommand, command_id: string) => ({
  actor: command.actor,
  reason: command.reason,
  patch_id: command.patch_id,
  command_id,
})

const voteEvent = (
  command: PatchCommand,
  command_id: string,
  patch: PatchRow,
  decision: 'approve' | 'reject',
  comment: string | null,
): TimelineEvent => ({
  ...said(command, command_id),
  type: 'patch.voted',
  reason: comment,
  data: { decision, digest: patch.digest },
  evidence: {
    kind: 'vote',
    statement: `${command.actor.name} ${decision === 'approve' ? 'approved' : 'rejected'} patch ${patch.patch_id}`,
    subject: {
      type: 'patch',
      id: patch.patch_id,
      decision,
      digest: patch.digest,
      voter: command.caller.user_id,
      groups: command.caller.groups,
    },
    subject_digest: digest({ patch_id: patch.patch_id, decision, comment, digest: patch.digest }),
  },
})

const evidenceOf = (
  statement: string,
  patch_id: string,
  subject_digest: string,
  more: Partial<EvidenceSubject> = {},
) => ({
  kind: 'patch' as const,
  statement,
  subject: { type: 'patch', id: patch_id, ...more },
  subject_digest,
})
