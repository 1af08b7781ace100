import { sql } from 'drizzle-orm'
import { listTargets } from '../../../db/operations/leases/drift.ts'
import { holdNodes, insertPatch } from '../../../db/operations/patches/rows.ts'
import { refusePatch } from '../../../workflows/operation/rules/patches.ts'
import type { ProposeBody } from '../../shared/contracts/operations/patches.ts'
import { askHeads } from '../catalog/heads.ts'
import { checkIfMatch, lockVisible, type Steps, type Subject } from '../command/command.ts'
import type { ReplanDeps } from '../deps.ts'
import { refuseOn } from '../operations/control.ts'
import { boundPatch, notApplicable } from '../plans/ahead.ts'
import { operationObject, refuseByPolicy, refused, throwIfRefused } from '../policies/authority.ts'
import { answered, evidenceOf, type PatchCommand, refuseBase, said, soundOutlook } from './decide.ts'

const EXPIRES_S = 86_400

/** Proposes a patch: the nodes that it would change are held until it is decided (operations.md 2.6). */
export const proposeSteps = (deps: ReplanDeps, command: PatchCommand, body: ProposeBody): Steps<Subject> => {
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
      await refuseOn(deps, tx, command, subject, refusePatch(subject.facts))
      checkIfMatch(command.if_match, subject.revision)
      throwIfRefused(refuseBase(base_revision, plan_revision))
      heads.require()
      const outlook = await soundOutlook(deps, tx, subject, changes)
      const { patched, diff_graph, result_hash, rearmed } = outlook
      const { touched } = patched
      const shown = { diff_graph, held_nodes: touched, rearmed_gates: rearmed, required: patched.required }
      const patch = {
        patch_id,
        base_revision,
        changes: changes as Record<string, unknown>[],
        reason: body.reason,
        ticket: body.ticket ?? null,
        proposer: actor,
        result_hash,
      }
      const { digest: patch_digest } = boundPatch(patch)
      await insertPatch(tx, {
        ...patch,
        operation_id,
        proposer_id: caller.user_id,
        digest: patch_digest,
        ...shown,
        expires_at: sql`clock_timestamp() + make_interval(secs => ${body.expires_in_s ?? EXPIRES_S})`,
      })
      if (touched.length > 0 && (await holdNodes(tx, operation_id, touched, patch_id)) !== touched.length)
        throw refused(notApplicable('patch_overlap', 'Another patch took one of these nodes a moment ago.'))
      const effect = { patch_id, ...shown, result_hash }
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
