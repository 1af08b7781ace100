import { useRef, useState } from 'react'
import { useConnection } from '../../api/hooks.ts'
import { isLeft } from '../../command/each.ts'
import { ConfirmField, PasswordAgain, ReasonField } from '../../command/fields.tsx'
import { useTyped } from '../../session/typed.ts'
import { DialogFrame } from '../../ui/overlays.tsx'
import { Loading } from '../../ui/page.tsx'
import { tDecide } from '../../words/decide.ts'
import { tBulk as words } from '../../words/frame/inbox-parts.ts'
import { t } from '../../words/index.ts'
import { tCommand } from '../../words/operations/command.ts'
import { type Ballot, type Candidate, flipped, keyOf, mayTogether, nounOf, partOf, type Together } from './alike.ts'
import { useBatch } from './batch.ts'
import { useCandidates } from './read.ts'
import { Change, Items, LeftOut } from './rows.tsx'

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
  const [comment, setComment] = useTyped(`bulk ${verdict}`, '')
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
  const marks = { ticked, results, toggle: begun ? undefined : toggle }
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
                ? tCommand.sending
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
          <Items items={alike} {...marks} />
        </section>
      ) : (
        <p>{words.none}</p>
      )}
      {apart.length > 0 ? (
        <section aria-label={words.apart} className="flex flex-col gap-2">
          <h3 className="font-semibold">{words.apart}</h3>
          <Items items={apart} apart {...marks} />
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
