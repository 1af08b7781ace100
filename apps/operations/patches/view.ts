import { getPatchHead, listMended, type PatchRow } from '../../../db/operations/patches/rows.ts'
import { refusePatchDecision } from '../../../workflows/operation/rules/patches.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { OperationStatus } from '../../shared/contracts/operations/graph.ts'
import type { Patch, PatchDetail } from '../../shared/contracts/operations/patches.ts'
import { notFound } from '../../shared/errors.ts'
import { factsOf } from '../command/command.ts'
import type { Uses } from '../deps.ts'
import { boundPatch, patchGroups, requirePatch } from '../plans/ahead.ts'
import {
  allowedAction,
  type Governed,
  isVisible,
  operationObject,
  placesFor,
  refuseByPolicy,
} from '../policies/authority.ts'
import type { PolicyAction, PolicyObject } from '../policies/cedar.ts'

/** A patch as policies see it: the gates that it touches determine who may vote. */
export const patchObject = (operation: Governed, patch: PatchRow): PolicyObject => ({
  ...operationObject(operation),
  type: 'Patch',
  id: `${operation.operation_id}/${patch.patch_id}`,
  requester: patch.proposer_id,
  behind: patch.proposer.behind ?? [],
  four_eyes: patch.required.some(({ four_eyes }) => four_eyes),
  groups: patchGroups(patch.required),
})

/** The proposer withdraws a patch; others reject it. */
export const rejectAction = (caller: Caller, patch: PatchRow): PolicyAction =>
  patch.proposer_id === caller.user_id ? 'patch.propose' : 'patch.reject'

/** Returns how many approvals a patch needs: as many as the strictest gate that it touches. */
export const quorumOf = (required: readonly { quorum: number }[]): number =>
  Math.max(1, ...required.map(({ quorum }) => quorum))

type Head = NonNullable<Awaited<ReturnType<typeof getPatchHead>>>

/** Returns a patch for its readers, with the actions that this caller may take. */
export const viewPatch = (
  deps: Uses<'clock' | 'policies'>,
  caller: Caller,
  head: Head,
  places: readonly Place[],
  patch: PatchRow,
): Patch => {
  const facts = factsOf(head as never)
  const object = patchObject({ ...head, places }, patch)
  const may = (action: PolicyAction) => refuseByPolicy(deps, caller, action, object, places)
  const closed = refusePatchDecision(facts, patch, deps.clock.now())
  const own = patch.proposer_id === caller.user_id
  const { decided_by, decided_at, proposer_id: _, votes, required, diff_graph, rebase, ...row } = patch
  const { asked, digest } = boundPatch(patch)
  const groups = new Map<string, number>()
  for (const policy of required)
    for (const { group, min } of policy.groups) groups.set(group, Math.max(groups.get(group) ?? 0, min))
  return {
    ...row,
    asked: digest === patch.digest ? asked : null,
    diff_graph: diff_graph as Patch['diff_graph'],
    violations: [],
    required: {
      quorum: quorumOf(required),
      groups: [...groups].map(([group, min]) => ({ group, min })),
      policies: required.map(({ key }) => key),
      four_eyes: object.four_eyes,
      comment_on_approve: required.some(({ comment_on_approve }) => comment_on_approve),
      signature: required.some(({ signature }) => signature) ? 'required' : null,
    },
    votes: votes.map(({ user_id: _user, groups: _groups, ...vote }) => vote),
    decided: decided_by && decided_at ? { by: decided_by, at: decided_at } : null,
    rebase: rebase as Patch['rebase'],
    change_seq: head.change_seq,
    allowed_actions: [
      allowedAction('approve', may('patch.approve'), closed),
      allowedAction(own ? 'withdraw' : 'reject', may(rejectAction(caller, patch)), closed),
    ],
  }
}

/** Returns the parts of the operation that all patch routes need first. Throws not_found. */
export const readHead = async (deps: Uses<'db'>, caller: Caller, operation_id: string) => {
  const head = await getPatchHead(deps.db, operation_id)
  const places = head ? await placesFor(deps.db, caller, head.resource_ids) : []
  if (!head || !isVisible(caller, head.requester_id, places)) throw notFound('operation', operation_id)
  return { head, places }
}

export const readPatch = async (
  deps: Uses<'clock' | 'db' | 'policies'>,
  caller: Caller,
  operation_id: string,
  patch_id: string,
): Promise<{ view: PatchDetail; head: Head; operation_status: OperationStatus }> => {
  const { head, places } = await readHead(deps, caller, operation_id)
  const patch = await requirePatch(deps.db, operation_id, patch_id)
  const view = { ...viewPatch(deps, caller, head, places, patch), mends: await listMended(deps.db, patch) }
  return { view, head, operation_status: factsOf(head as never).status }
}
