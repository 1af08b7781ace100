import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import type { Gate } from '../api/types.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { Button } from '../forms/button.tsx'
import { confirmInProd } from '../kit/environment.ts'
import { ChangeList } from '../values/diff.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { useNow } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { approveWords, BriefLine, ChangeLine } from './brief.tsx'
import { backLine, gravest } from './context.ts'
import { differencesOf } from './differences.ts'
import { type DigestCheck, unchecked } from './digest.ts'
import { signed } from './sign.ts'
import { badWords } from './targets.ts'
import { ruleOf } from './votes.tsx'

type DecideDialogProps = {
  gate: Gate
  check: DigestCheck
  verdict: 'approve' | 'reject'
  /** The bad news that the page showed when it opened. */
  known: readonly string[]
  close: () => void
}

/** Confirms one decision. If its subject changes meanwhile, the difference is shown and must be reviewed first. */
export const DecideDialog = ({ gate, check, verdict, known, close }: DecideDialogProps) => {
  const now = useNow()
  const { reviewed, moved } = useReviewed(gate)
  const refresh = useRefresh(gate)
  const approve = verdict === 'approve'
  const missing = gate.missing.reduce((sum, { count }) => sum + count, 0)
  const commentNeeded = !approve || ruleOf(gate).comment_on_approve === true
  const context = gravest(gate, now)
  const worse = context.filter((line) => line.bad && !known.includes(line.news))
  return (
    <CommandDialog
      title={approve ? gate.question : `${tDecide.gate.reject}: ${gate.question}`}
      button={approve ? approveWords(gate) : tDecide.gate.reject}
      danger={!approve}
      command={{
        path: pathOf(gate, verdict),
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
      blocked={moved !== null}
      why={moved === null ? unchecked(check, approve) : undefined}
      refused={refresh}
      done={refresh}
      close={close}
    >
      <div className="flex flex-col gap-2">
        {worse.length > 0 ? (
          <div className="rounded-card bg-bad-soft p-3 text-bad" role="alert" tabIndex={-1} data-first="">
            <p className="font-medium">{tDecide.gate.brief.worse}</p>
            {worse.map(({ label, parts }) => (
              <p key={label}>
                {label}: {badWords(parts)}
              </p>
            ))}
          </div>
        ) : null}
        {gate.subject ? <ChangeLine subject={gate.subject} order={gate.brief?.order} /> : null}
        {approve ? (
          <dl className="brief">
            {[...context.filter((line) => !worse.includes(line)), backLine(gate)].map((line) => (
              <BriefLine key={line.label} line={line} />
            ))}
          </dl>
        ) : (
          <p>{tDecide.gate.reject_now(tDecide.gate.reject_effect[gate.on_reject] ?? gate.on_reject)}</p>
        )}
        {approve && missing > 1 ? <p>{tDecide.gate.approve_quorum(missing - 1)}</p> : null}
        {approve && gate.policy.signature === 'required' ? <p>{tDecide.gate.needs_passkey}</p> : null}
        <p className="text-muted">{tDecide.gate.panel_binding(reviewed.round, shortDigest(reviewed.digest))}</p>
      </div>
      {moved}
    </CommandDialog>
  )
}

/** What the person read. If the gate asks for something else meanwhile, `moved` shows it, to be read first. */
const useReviewed = ({ digest, round, subject }: Gate) => {
  const [reviewed, setReviewed] = useState({ digest, round, subject })
  const moved =
    digest === reviewed.digest && round === reviewed.round ? null : (
      <div className="flex flex-col gap-2 rounded-card bg-wait-soft p-4" role="alert">
        <p className="flex gap-2 font-medium text-wait">
          <ShapeIcon shape="diamond" tone="wait" />
          {tDecide.gate.moved}
        </p>
        <ChangeList changes={differencesOf(reviewed.subject, subject)} />
        <p>
          <Button onClick={() => setReviewed({ digest, round, subject })} word={tDecide.gate.read_it} />
        </p>
      </div>
    )
  return { reviewed, moved }
}

/** Rereads the data that a decision changes. */
const useRefresh = ({ operation_id }: Gate) => {
  const client = useQueryClient()
  return () => {
    for (const key of [['gate', operation_id], ['operation', operation_id], ['graph', operation_id], ['inbox'], ['me']])
      void client.invalidateQueries({ queryKey: key })
  }
}

const pathOf = ({ operation_id, gate_id }: Gate, verb: string): string =>
  `/v1/operations/${encodeURIComponent(operation_id)}/gates/${encodeURIComponent(gate_id)}/${verb}`

/** Overrides every vote, in an emergency, with a reason. */
export const BreakDialog = ({ gate, check, close }: { gate: Gate; check: DigestCheck; close: () => void }) => {
  const { reviewed, moved } = useReviewed(gate)
  const refresh = useRefresh(gate)
  return (
    <CommandDialog
      title={tDecide.gate.break_title}
      button={tDecide.gate.break_button}
      danger
      {...confirmInProd(gate.operation_id)}
      command={{ path: pathOf(gate, 'approve'), body: { round: reviewed.round, reviewed_digest: reviewed.digest } }}
      preview={null}
      complete={async ({ path, body: { reason, ...body } }) => ({ path, body: { ...body, break_glass: { reason } } })}
      text={{
        name: 'reason',
        label: tDecide.gate.break_reason,
        needed: true,
        missing: tDecide.gate.break_reason_needed,
      }}
      blocked={moved !== null}
      why={moved === null ? unchecked(check, true) : undefined}
      refused={refresh}
      done={refresh}
      close={close}
    >
      <p>{tDecide.gate.break_effect}</p>
      {gate.subject ? <ChangeLine subject={gate.subject} order={gate.brief?.order} /> : null}
      {moved}
    </CommandDialog>
  )
}
