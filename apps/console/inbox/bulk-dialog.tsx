import { type QueryFunction, useQueries, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useConnection } from '../api/hooks.ts'
import type { Gate, Patch } from '../api/types.ts'
import { Because, type Why } from '../command/allowed.tsx'
import { ConfirmField, PasswordAgain, ReasonField } from '../command/fields.tsx'
import { patchQuery } from '../queries/changes.ts'
import { gateQuery, graphQuery } from '../queries/operations.ts'
import { ProblemText } from '../ui/failure.tsx'
import { DialogFrame } from '../ui/overlays.tsx'
import { Loading } from '../ui/page.tsx'
import { Status } from '../values/status.tsx'
import { ChangeLine, Said } from '../votes/brief.tsx'
import { changeWords, nodeNames } from '../votes/patch-words.ts'
import { stepOf } from '../votes/releases.ts'
import { tDecide } from '../words/decide.ts'
import { tBulk as words } from '../words/frame/inbox-parts.ts'
import { t } from '../words/index.ts'
import {
  type Ballot,
  type Candidate,
  candidateOf,
  flipped,
  isPatch,
  keyOf,
  mayTogether,
  nounOf,
  partOf,
  type Together,
} from './alike.ts'
import { type Result, useBatch } from './batch.ts'

/** Decides the selected gates and patches together: rereads each, sets aside those that differ, shows every answer. */
export const BulkDialog = ({ rows, verdict, close }: { rows: Ballot[]; verdict: Together; close: () => void }) => {
  const [asked] = useState(() => rows.filter((row) => mayTogether(row, verdict)))
  const [alone] = useState(() => rows.filter((row) => !mayTogether(row, verdict)))
  const read = useCandidates(asked)
  return read === undefined ? (
    <DialogFrame title={words.titles[verdict](rows.length, nounOf(rows))} close={close}>
      <Loading rows={2} />
    </DialogFrame>
  ) : (
    <Deciding {...read} alone={alone} verdict={verdict} close={close} />
  )
}

type Read = { queryKey: readonly unknown[]; queryFn: QueryFunction<Gate | Patch> }
const readOf = (row: Ballot): Read =>
  ('gate_id' in row ? gateQuery(row.operation_id, row.gate_id) : patchQuery(row.operation_id, row.patch_id)) as never

/** All items as read when the dialog opens, and those that could not be read; later changes do not reach them. */
const useCandidates = (rows: Ballot[]) => {
  const [opened] = useState(() => Date.now())
  const [result, setResult] = useState<{ candidates: Candidate[]; unread: Ballot[] }>()
  const reads = useQueries({
    queries: rows.map((row) => ({ ...readOf(row), staleTime: 0, refetchOnMount: 'always' as const })),
  })
  const answered = reads.every(({ dataUpdatedAt, errorUpdatedAt }) => Math.max(dataUpdatedAt, errorUpdatedAt) >= opened)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first read is decided on
  useEffect(() => {
    if (!answered || result !== undefined) return
    const readAt = (at: number) => (reads[at]?.isError ? undefined : reads[at]?.data)
    const read = rows.flatMap((row, at) => {
      const read = readAt(at)
      return read ? [candidateOf(row, read)] : []
    })
    const unread = rows.filter((_, at) => readAt(at) === undefined)
    void Promise.all(read).then((candidates) => setResult({ candidates, unread }))
  }, [answered])
  return result
}

type DecidingProps = {
  candidates: Candidate[]
  unread: Ballot[]
  alone: Ballot[]
  verdict: Together
  close: () => void
}

const Deciding = ({ candidates, unread, alone, verdict, close }: DecidingProps) => {
  const [{ alike, apart, elsewhere, out }] = useState(() => partOf(candidates))
  const [ticked, setTicked] = useState<ReadonlySet<string>>(() => new Set(alike.map(({ row }) => keyOf(row))))
  const [comment, setComment] = useState('')
  const [typed, setTyped] = useState('')
  const [checked, setChecked] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const offline = useConnection().mode === 'offline'
  const { results, sending, stale, send, confirmed, begun } = useBatch(verdict)
  const chosen = [...alike, ...apart].filter(({ row }) => ticked.has(keyOf(row)))
  const noun = nounOf(
    chosen.length > 0 ? chosen.map(({ row }) => row) : [...candidates.map(({ row }) => row), ...unread, ...alone],
  )
  const left = chosen.filter(({ row }) => isLeft(results.get(keyOf(row))))
  const commentMissing = verdict === 'reject' && comment.trim() === ''
  const countMissing = typed.trim() !== String(chosen.length)
  const press = () => {
    if (sending || offline || stale) return
    setChecked(true)
    if (commentMissing) return field.current?.focus()
    if (left.length > 0 && !countMissing) void send(left, comment.trim())
  }
  const toggle = (row: Ballot) => setTicked((before) => flipped(before, keyOf(row)))
  const list = (items: Candidate[], isApart = false) => (
    <ul className="flex flex-col divide-y divide-line">
      {items.map((candidate) => (
        <Row
          key={keyOf(candidate.row)}
          candidate={candidate}
          apart={isApart}
          ticked={ticked.has(keyOf(candidate.row))}
          result={results.get(keyOf(candidate.row))}
          {...(begun ? {} : { toggle: () => toggle(candidate.row) })}
        />
      ))}
    </ul>
  )
  /** Closed while it sends, it would hide the outcomes. */
  const leave = () => {
    if (!sending) close()
  }
  const over = begun && !sending && left.length === 0
  return (
    <DialogFrame
      title={words.titles[verdict](chosen.length, noun)}
      close={leave}
      wide
      footer={
        <>
          <button type="button" className="button" aria-disabled={sending} onClick={leave}>
            {t.close}
          </button>
          {over || chosen.length === 0 ? null : (
            <button
              type="button"
              className={`button main ${verdict === 'reject' ? 'danger' : ''}`}
              aria-disabled={sending || offline || stale}
              onClick={press}
            >
              {sending
                ? tDecide.command.sending
                : begun
                  ? words.rest(left.length)
                  : words.buttons[verdict](chosen.length, noun)}
            </button>
          )}
        </>
      }
    >
      {alike[0] ? (
        <section aria-label={words.alike(alike.length, nounOf([alike[0].row]))} className="flex flex-col gap-2">
          <h3 className="font-semibold">{words.alike(alike.length, nounOf([alike[0].row]))}</h3>
          <Change read={alike[0].read} />
          {list(alike)}
        </section>
      ) : (
        <p>{words.none}</p>
      )}
      {apart.length > 0 ? (
        <section aria-label={words.apart} className="flex flex-col gap-2">
          <h3 className="font-semibold">{words.apart}</h3>
          {list(apart, true)}
        </section>
      ) : null}
      <LeftOut alone={alone} unread={unread} verdict={verdict} elsewhere={elsewhere} out={out} />
      {chosen.length === 0 ? null : (
        <>
          <ReasonField
            label={verdict === 'reject' ? tDecide.gate.comment : tDecide.gate.comment_optional}
            needed={verdict === 'reject'}
            field={field}
            value={comment}
            change={setComment}
            readOnly={begun}
            error={checked && commentMissing ? tDecide.gate.comment_needed : null}
          />
          <ConfirmField
            word={String(chosen.length)}
            value={typed}
            change={setTyped}
            readOnly={begun}
            missing={checked && countMissing}
          />
        </>
      )}
      {stale ? <PasswordAgain confirmed={confirmed} /> : null}
      <p role="status">{begun ? words.progress(chosen.length - left.length, chosen.length) : ''}</p>
    </DialogFrame>
  )
}

const isLeft = (result: Result | undefined): boolean =>
  result === undefined || result.state === 'held' || result.state === 'unknown' || result.state === 'sending'

type RowProps = {
  candidate: Candidate
  apart: boolean
  ticked: boolean
  result: Result | undefined
  toggle?: () => void
}
const Row = ({ candidate: { row, read }, apart, ticked, result, toggle }: RowProps) => (
  <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
    <label className="flex min-w-0 flex-1 items-center gap-3">
      <input type="checkbox" checked={ticked} disabled={!toggle} onChange={() => toggle?.()} />
      <span className="min-w-0 wrap-anywhere">
        <Said>{row.operation_title}</Said>
        <span className="text-muted">
          {' · '}
          <Said>{row.title}</Said>
        </span>
      </span>
    </label>
    {apart ? <Change read={read} /> : null}
    {result ? <Answer result={result} /> : null}
  </li>
)

/** The changes of a gate, and its steps by name if no field shows their effect; for a patch, its graph changes. */
const Change = ({ read }: Pick<Candidate, 'read'>) => {
  if (isPatch(read)) return <PatchChange patch={read} />
  const { subject, brief } = read
  return subject === null ? null : (
    <div>
      <ChangeLine subject={subject} order={brief?.order} />
      {subject.changes.length > 0 ? null : (
        <p className="text-muted wrap-anywhere">
          <Said>{stepsOf(subject)}</Said>
        </p>
      )}
    </div>
  )
}
const STEPS = 6
const PatchChange = ({ patch: { operation_id, changes } }: { patch: Patch }) => {
  const nodes = useQuery(graphQuery(operation_id)).data?.nodes
  const nameOf = nodeNames(nodes, changes)
  return (
    <ul className="list-disc pl-5">
      {changes.slice(0, STEPS).map((change) => (
        <li key={JSON.stringify(change)} className="wrap-anywhere">
          <Said>{changeWords(change, nameOf)}</Said>
        </li>
      ))}
      {changes.length > STEPS ? <li className="text-muted">{t.others(changes.length - STEPS)}</li> : null}
    </ul>
  )
}
const stepsOf = ({ releases }: NonNullable<Gate['subject']>): string => {
  const names = [...new Set(releases.map(stepOf))]
  return t.and([...names.slice(0, STEPS), ...(names.length > STEPS ? [t.others(names.length - STEPS)] : [])])
}

const Answer = ({ result }: { result: Result }) => {
  if (result.state === 'done')
    return /^(waiting|awaiting_approval)$/.test(result.status) ? (
      <span>{words.counted}</span>
    ) : (
      <Status state={result.status} />
    )
  if (result.state === 'sending') return <span className="text-muted">{tDecide.command.sending}</span>
  const { state, problem } = result
  // The field for the password, below, says the rest.
  if (state === 'held' && problem.code === 'reauth_required') return <span className="text-muted">{words.held}</span>
  return (
    <div className="basis-full">
      <p className="font-medium">
        {state === 'held' ? words.held : state === 'unknown' ? tDecide.command.unknown : tDecide.command.not_possible}
      </p>
      <ProblemText problem={problem} />
    </div>
  )
}

type LeftOutProps = { alone: Ballot[]; unread: Ballot[]; verdict: Together; elsewhere: Candidate[]; out: Candidate[] }
/** Every selected item that is not decided here, and why. */
const LeftOut = ({ alone, unread, verdict, elsewhere, out }: LeftOutProps) => {
  const all: { row: Ballot; why: Why }[] = [
    ...alone.map((row) => ({ row, why: whyNot(row, verdict) })),
    ...unread.map((row) => ({ row, why: t.problem.failed })),
    ...elsewhere.map(({ row }) => ({ row, why: words.elsewhere(row.environment ?? t.none) })),
    ...out.map(({ row, out }) => ({ row, why: out === 'differs' ? tDecide.gate.digest_differs : words.moved })),
  ]
  return all.length === 0 ? null : (
    <section aria-label={words.out} className="flex flex-col gap-2">
      <h3 className="font-semibold">{words.out}</h3>
      <ul className="flex flex-col gap-1">
        {all.map(({ row, why }) => (
          <li key={keyOf(row)} className="wrap-anywhere">
            <Said>{row.operation_title}</Said>:{' '}
            <span className="text-muted">
              <Because why={why} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

const whyNot = ({ alone, barred }: Ballot, verdict: Together): Why => {
  const why = alone[verdict]
  return why ? tDecide.inbox.bulk.alone[why] : (barred[verdict] ?? tDecide.inbox.not_you)
}
