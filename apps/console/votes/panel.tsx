import { Link } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import { serverNow } from '../api/live.ts'
import type { AllowedAction, Gate } from '../api/types.ts'
import { actionOf, Because, mayPress, type Why, WhyNot } from '../command/allowed.tsx'
import { Button } from '../forms/button.tsx'
import { useWishes } from '../kit/wish.ts'
import { CopyButton } from '../ui/copy.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { OperationLink } from '../values/links.tsx'
import { isMe } from '../values/person.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { gravest } from './context.ts'
import { type DigestCheck, unchecked, useDigestCheck } from './digest.ts'
import { votesInRound } from './votes.tsx'

const loadDialog = () => import('./dialog.tsx').then((part) => ({ default: part.DecideDialog }))
const DecideDialog = lazyPart(loadDialog)
const BreakDialog = lazyPart(() => import('./dialog.tsx').then((part) => ({ default: part.BreakDialog })))

export type Verdict = 'approve' | 'reject' | 'break'

type DecidePanelProps = { gate: Gate; open: Verdict | null; setOpen: (open: Verdict | null) => void }

/** Approves or rejects, bound to the digest and round of this page, or says why neither is possible. */
export const DecidePanel = ({ gate, open, setOpen }: DecidePanelProps) => {
  const check = useDigestCheck(gate.subject, gate.digest)
  const [known] = useState(() =>
    gravest(gate, serverNow())
      .filter(({ bad }) => bad)
      .map(({ news }) => news),
  )
  useWishes(gate.gate_id, (what) => {
    const may = mayDecide(gate, what, check)
    if (may) setOpen(what as Verdict)
    return may
  })
  const glass = actionOf(gate, 'break_glass')
  const mine = votesInRound(gate).findLast((vote) => isMe(vote.actor))
  const missing = gate.missing.reduce((sum, { count }) => sum + count, 0)
  return (
    <DecideBox
      title={tDecide.gate.panel}
      binding={tDecide.gate.panel_binding(gate.round, shortDigest(gate.digest))}
      digest={gate.digest}
      check={check}
      said={mine && gate.status === 'waiting' ? tDecide.gate.my_vote(missing) : null}
      self={tDecide.gate.self}
      approve={{ word: tDecide.gate.approve, action: actionOf(gate, 'approve'), press: () => setOpen('approve') }}
      reject={{ word: tDecide.gate.reject, action: actionOf(gate, 'reject'), press: () => setOpen('reject') }}
      prepare={() => void loadDialog()}
    >
      {open ? (
        <Suspense fallback={null}>
          {open === 'break' ? (
            <BreakDialog gate={gate} check={check} close={() => setOpen(null)} />
          ) : (
            <DecideDialog gate={gate} check={check} verdict={open} known={known} close={() => setOpen(null)} />
          )}
        </Suspense>
      ) : null}
      {mayPress(glass) ? (
        <button
          type="button"
          className="link self-start"
          aria-disabled={check !== 'matches'}
          onClick={() => check === 'matches' && setOpen('break')}
        >
          {tDecide.gate.brief.break_glass}
        </button>
      ) : (
        <WhyNot actions={[glass]} fold={() => true} />
      )}
    </DecideBox>
  )
}

/** Whether the page can open the dialog of a decision. */
export const mayDecide = (subject: { allowed_actions: AllowedAction[] }, what: string, check: DigestCheck): boolean =>
  unchecked(check, what === 'approve') === undefined && mayPress(actionOf(subject, what))

type Choice = { word: string; action: AllowedAction | undefined; press: () => void }

/** A decision: its digest, whether this page matches it, why it is not possible, and two buttons. */
export const DecideBox = ({
  title,
  binding,
  digest,
  check,
  said,
  self,
  own = false,
  approve,
  reject,
  prepare,
  children,
}: {
  title: string
  binding: string
  digest: string
  check: DigestCheck
  /** The state of the person's vote. */
  said: string | null
  /** Why people must not approve their own request. */
  self: string
  /** Whether it is the person's own request, regardless of other reasons. */
  own?: boolean
  /** Left out if the person can only withdraw their own request. */
  approve?: Choice
  reject: Choice
  prepare: () => void
  children: React.ReactNode
}) => {
  const choices = approve === undefined ? [reject] : [approve, reject]
  const whyNot = choices.flatMap(({ action }) => reasonOf(action, self, own) ?? [])
  const reasons = check === 'differs' ? [] : [...new Map(whyNot.map((why) => [textOf(why), why])).values()]
  return (
    <section className="card decide" aria-labelledby="decide-title">
      <h2 id="decide-title" className="card-title max-md:sr-only">
        {title}
      </h2>
      <div id="decide-check" className={`flex flex-col gap-2 ${check === 'differs' ? '' : 'max-md:hidden'}`}>
        <p className="flex items-center gap-1">
          {binding} <CopyButton text={digest} />
        </p>
        <p className="flex gap-2 text-table text-muted">
          <span className="mt-px">
            <ShapeIcon
              shape={check === 'matches' ? 'check' : check === 'differs' ? 'octagon' : 'dot'}
              tone={check === 'matches' ? 'ok' : check === 'differs' ? 'bad' : 'idle'}
            />
          </span>
          {check === 'matches'
            ? tDecide.gate.digest_matches
            : check === 'differs'
              ? tDecide.gate.digest_differs
              : tDecide.gate.checking}
        </p>
        {check === 'differs' ? (
          <p>
            <Button onClick={() => location.reload()} word={t.connection.reload} />
          </p>
        ) : null}
      </div>
      {said === null ? null : <p role="status">{said}</p>}
      <Reasons reasons={reasons} />
      <div className="flex gap-2">
        {approve ? (
          <Decide choice={approve} main enabled={check === 'matches' && mayPress(approve.action)} prepare={prepare} />
        ) : null}
        <Decide choice={reject} enabled={check !== 'differs' && mayPress(reject.action)} prepare={prepare} />
      </div>
      {children}
    </section>
  )
}

const textOf = (why: Why) => (typeof why === 'string' ? why : why.reason)

const Reasons = ({ reasons }: { reasons: Why[] }) =>
  reasons.length === 0 ? null : (
    <div id="decide-reason" className="flex gap-2 text-table">
      <span className="mt-px">
        <ShapeIcon shape="slash" tone="idle" />
      </span>
      <div className="min-w-0">
        {reasons.map((why) => (
          <p key={textOf(why)}>
            <Because why={why} />
          </p>
        ))}
      </div>
    </div>
  )

/** Links after a decision. */
export const AfterDecision = ({ gate }: { gate: Gate }) => (
  <p className="flex flex-wrap gap-2">
    <OperationLink id={gate.operation_id} className="button main">
      {tDecide.gate.watch}
    </OperationLink>
    <Link to="/inbox" search={{ for: 'me' }} className="button">
      {tDecide.gate.next}
    </Link>
  </p>
)

type DecideProps = { choice: Choice; enabled: boolean; prepare: () => void; main?: boolean }

const Decide = ({ choice, enabled, prepare, main = false }: DecideProps) => (
  <Button
    look={`flex-1 ${main ? 'main' : 'danger'}`}
    aria-disabled={!enabled}
    aria-describedby={enabled ? undefined : 'decide-reason decide-check'}
    onPointerEnter={prepare}
    onFocus={prepare}
    onClick={() => enabled && choice.press()}
    word={choice.word}
  />
)

const reasonOf = (action: AllowedAction | undefined, self: string, own: boolean): Why | null =>
  action === undefined || mayPress(action)
    ? null
    : action.reason_code === 'self_approval' || (own && action.reason_category === 'policy_denied')
      ? self
      : action.reason
        ? action
        : tDecide.gate.not_you

const DID: Record<string, string> = { rejected: 'reject', withdrawn: 'withdraw', bypassed: 'bypass' }

/** The decision behind a status, as a verb. */
export const didWord = (status: string): string => tDecide.gate.vote[DID[status] ?? 'approve'] ?? status
