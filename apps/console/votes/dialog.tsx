import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import type { FieldChange, Gate, GateSubject } from '../api/types.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { ChangeList } from '../values/diff.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { tDecide } from '../words/decide.ts'
import { signed } from './sign.ts'
import { ruleOf } from './votes.tsx'

/** Confirms one decision. If its subject changes meanwhile, the difference is shown and must be reviewed first. */
export const DecideDialog = ({
  gate,
  verdict,
  close,
}: {
  gate: Gate
  verdict: 'approve' | 'reject'
  close: () => void
}) => {
  const [reviewed, setReviewed] = useState({ digest: gate.digest, round: gate.round, subject: gate.subject })
  const client = useQueryClient()
  const refresh = () => {
    for (const key of [
      ['gate', gate.operation_id],
      ['operation', gate.operation_id],
      ['graph', gate.operation_id],
      ['inbox'],
      ['me'],
    ])
      void client.invalidateQueries({ queryKey: key })
  }
  const moved = gate.digest !== reviewed.digest || gate.round !== reviewed.round
  const approve = verdict === 'approve'
  const missing = gate.missing.reduce((sum, { count }) => sum + count, 0)
  const commentNeeded = !approve || ruleOf(gate).comment_on_approve === true
  const released = gate.subject?.releases_count ?? gate.subject?.releases.length ?? gate.guards.length
  return (
    <CommandDialog
      title={approve ? tDecide.gate.approve_title : tDecide.gate.reject_title}
      button={approve ? tDecide.gate.approve : tDecide.gate.reject}
      danger={!approve}
      command={{
        path: `/v1/operations/${encodeURIComponent(gate.operation_id)}/gates/${encodeURIComponent(gate.gate_id)}/${verdict}`,
        body: { round: reviewed.round, ...(approve ? { reviewed_digest: reviewed.digest } : {}) },
      }}
      {...(approve && gate.policy.signature === 'required'
        ? {
            complete: (command) =>
              signed(command, gate.operation_id, {
                type: 'gate',
                id: gate.gate_id,
                round: reviewed.round,
                digest: reviewed.digest,
              }),
          }
        : {})}
      text={{
        name: 'comment',
        label: commentNeeded ? tDecide.gate.comment : tDecide.gate.comment_optional,
        needed: commentNeeded,
        missing: tDecide.gate.comment_needed,
      }}
      blocked={moved}
      refused={refresh}
      done={refresh}
      close={close}
    >
      <div className="flex flex-col gap-1">
        <p className="font-medium wrap-anywhere">{gate.question}</p>
        <p>
          {approve
            ? missing > 1
              ? tDecide.gate.approve_quorum(missing - 1)
              : tDecide.gate.approve_effect(released)
            : tDecide.gate.reject_now(tDecide.gate.reject_effect[gate.on_reject] ?? gate.on_reject)}
        </p>
        {approve && gate.policy.signature === 'required' ? <p>{tDecide.gate.needs_passkey}</p> : null}
        <p className="text-muted">{tDecide.gate.panel_binding(reviewed.round, shortDigest(reviewed.digest))}</p>
      </div>
      {moved ? (
        <div className="flex flex-col gap-2 rounded-card bg-wait-soft p-4" role="alert">
          <p className="flex gap-2 font-medium text-wait">
            <ShapeIcon shape="diamond" tone="wait" />
            {tDecide.gate.moved}
          </p>
          <ChangeList changes={differences(reviewed.subject, gate.subject)} />
          <p>
            <button
              type="button"
              className="button"
              onClick={() => setReviewed({ digest: gate.digest, round: gate.round, subject: gate.subject })}
            >
              {tDecide.gate.read_it}
            </button>
          </p>
        </div>
      ) : null}
    </CommandDialog>
  )
}

/** The question that was read against the current one: value after the change, field by field. */
function differences(before: GateSubject | null, now: GateSubject | null): GateSubject['changes'] {
  const was = afters(before)
  const is = afters(now)
  const result: GateSubject['changes'] = []
  for (const resource_id of new Set([...was.keys(), ...is.keys()])) {
    const [old, fresh] = [was.get(resource_id), is.get(resource_id)]
    const fields: FieldChange[] = []
    for (const path of new Set([...(old?.keys() ?? []), ...(fresh?.keys() ?? [])])) {
      const [a, b] = [old?.get(path), fresh?.get(path)]
      if (JSON.stringify(a) !== JSON.stringify(b)) fields.push({ path, before: a ?? null, after: b ?? null })
    }
    if (fields.length > 0) result.push({ resource_id, change: !old ? 'create' : !fresh ? 'delete' : 'update', fields })
  }
  return result
}

function afters(subject: GateSubject | null): Map<string, Map<string, unknown>> {
  const map = new Map<string, Map<string, unknown>>()
  for (const change of subject?.changes ?? [])
    map.set(change.resource_id, new Map(change.fields.map((field) => [field.path, field.after])))
  for (const release of subject?.releases ?? [])
    map.set(
      release.node_id,
      new Map([
        ['inputs', release.inputs],
        ['on_failure', release.on_failure],
      ]),
    )
  return map
}
