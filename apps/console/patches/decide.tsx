import { useQueryClient } from '@tanstack/react-query'
import { Suspense, useMemo, useState } from 'react'
import { patchSubject, shortDigest } from '../../shared/contracts/client/digest.ts'
import type { PatchDetail } from '../api/types.ts'
import { actionOf } from '../command/allowed.tsx'
import { shown } from '../kit/format.ts'
import { useWishes } from '../kit/wish.ts'
import { lazyPart } from '../ui/lazy.ts'
import { isMe } from '../values/person.tsx'
import { type DigestCheck, unchecked, useDigestCheck } from '../votes/digest.ts'
import { DecideBox, mayDecide } from '../votes/panel.tsx'
import { callOf, changeWords } from '../votes/patch-words.ts'
import { signed } from '../votes/sign.ts'
import { tChange } from '../words/change.ts'
import { tDecide } from '../words/decide.ts'

const loadDialog = () => import('../command/dialog.tsx').then((part) => ({ default: part.CommandDialog }))
const CommandDialog = lazyPart(loadDialog)

export type PatchVerdict = 'approve' | 'reject'
const LISTED = 3
type Effect = { status?: string; plan_revision?: number; rearmed_gates?: string[] }

type PatchDecideProps = {
  patch: PatchDetail
  nodeName: (id: string) => string
  open: PatchVerdict | null
  setOpen: (open: PatchVerdict | null) => void
}

/** Approves or rejects a patch, bound to the digest that this browser computes; its proposer may withdraw it. */
export const PatchDecide = ({ patch, nodeName, open, setOpen }: PatchDecideProps) => {
  const check = useDigestCheck(
    useMemo(() => patchSubject(patch), [patch]),
    patch.digest,
  )
  const withdraw = actionOf(patch, 'withdraw')
  useWishes(patch.patch_id, (what) => {
    const may = mayDecide(patch, what, check)
    if (may) setOpen(what === 'approve' ? 'approve' : 'reject')
    return may
  })
  const voted = patch.votes.some(({ actor, decision }) => isMe(actor) && decision === 'approve')
  return (
    <DecideBox
      title={tChange.patch.panel}
      binding={tChange.patch.binding(shortDigest(patch.digest))}
      digest={patch.digest}
      check={check}
      said={voted ? tChange.patch.approve_more : null}
      self={tChange.patch.self}
      own={withdraw !== undefined}
      approve={{ word: tDecide.gate.approve, action: actionOf(patch, 'approve'), press: () => setOpen('approve') }}
      reject={{
        word: withdraw ? tChange.patch.withdraw : tDecide.gate.reject,
        action: withdraw ?? actionOf(patch, 'reject'),
        press: () => setOpen('reject'),
      }}
      prepare={() => void loadDialog()}
    >
      {open ? (
        <Suspense fallback={null}>
          <Dialog
            patch={patch}
            check={check}
            nodeName={nodeName}
            verdict={open}
            own={withdraw !== undefined}
            close={() => setOpen(null)}
          />
        </Suspense>
      ) : null}
    </DecideBox>
  )
}

type DialogProps = {
  patch: PatchDetail
  check: DigestCheck
  nodeName: (id: string) => string
  verdict: PatchVerdict
  own: boolean
  close: () => void
}

const Dialog = ({ patch: now, check, nodeName, verdict, own, close }: DialogProps) => {
  /** What the person read: a later read of the page must not put another digest below their decision. */
  const [patch] = useState(now)
  const client = useQueryClient()
  const refresh = () => {
    for (const noun of ['patch', 'patches', 'operation', 'graph', 'nodes'])
      void client.invalidateQueries({ queryKey: [noun, patch.operation_id] })
  }
  const approve = verdict === 'approve'
  const needed = !approve || patch.required.comment_on_approve
  return (
    <CommandDialog
      title={`${approve ? tDecide.gate.approve : own ? tChange.patch.withdraw : tDecide.gate.reject}: ${patch.reason}`}
      button={
        approve ? tChange.patch.approve_count(patch.changes.length) : own ? tChange.patch.withdraw : tDecide.gate.reject
      }
      danger={!approve}
      command={{
        path: `/v1/operations/${encodeURIComponent(patch.operation_id)}/patches/${encodeURIComponent(patch.patch_id)}/${verdict}`,
        body: approve ? { reviewed_digest: patch.digest } : {},
      }}
      {...(approve && patch.required.signature
        ? {
            complete: (command) =>
              signed(command, patch.operation_id, {
                type: 'patch',
                id: patch.patch_id,
                round: null,
                digest: patch.digest,
              }),
          }
        : {})}
      text={{
        name: 'comment',
        label: needed ? tDecide.gate.comment : tDecide.gate.comment_optional,
        needed,
        missing: tDecide.gate.comment_needed,
      }}
      why={unchecked(check, approve)}
      consequences={(effect) => <Consequences effect={effect as Effect} approve={approve} mends={patch.mends} />}
      refused={refresh}
      done={refresh}
      close={close}
    >
      <ul>
        {patch.changes.slice(0, LISTED).map((change) => (
          <li key={JSON.stringify(change)}>
            {changeWords(change, nodeName)}{' '}
            {callOf(change) === null ? null : <code className="text-muted">{callOf(change)}</code>}
          </li>
        ))}
        {patch.changes.length > LISTED ? (
          <li className="text-muted">{tChange.patch.more(patch.changes.length - LISTED)}</li>
        ) : null}
      </ul>
      <p className="text-muted">{tChange.patch.binding(shortDigest(patch.digest))}</p>
    </CommandDialog>
  )
}

type ConsequencesProps = { effect: Effect; approve: boolean } & Pick<PatchDetail, 'mends'>
const Consequences = ({ effect, approve, mends }: ConsequencesProps) => {
  const { plan_revision, rearmed_gates = [] } = effect
  if (!approve) return <p>{tChange.patch.reject_now}</p>
  return (
    <>
      <p>{plan_revision === undefined ? tChange.patch.approve_more : tChange.patch.approve_now(plan_revision)}</p>
      {plan_revision !== undefined && mends.length > 0 ? (
        <p>
          {tChange.patch.still} {mends.map(({ name }) => shown(name)).join(', ')}.
        </p>
      ) : null}
      {rearmed_gates.length > 0 ? <p>{tChange.patch.rearmed(rearmed_gates)}</p> : null}
    </>
  )
}
