import { useState } from 'react'
import { BulkFrame } from '../../command/bulk.tsx'
import { isLeft } from '../../command/each.ts'
import { DialogFrame } from '../../ui/overlays.tsx'
import { Loading } from '../../ui/page.tsx'
import { tDecide } from '../../words/decide.ts'
import { tBulk as words } from '../../words/frame/inbox-parts.ts'
import { type Ballot, type Candidate, flipped, keyOf, mayTogether, nounOf, partOf, type Together } from './alike.ts'
import { useBatch } from './batch.ts'
import { useCandidates } from './read.ts'
import { Change, Items, LeftOut, placeOf } from './rows.tsx'

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
  const { results, sending, stale, send, confirmed, begun } = useBatch(verdict)
  const chosen = [...alike, ...apart].filter(({ row }) => ticked.has(keyOf(row)))
  const noun = nounOf(
    chosen.length > 0 ? chosen.map(({ row }) => row) : [...candidates.map(({ row }) => row), ...unread, ...alone],
  )
  const left = chosen.filter(({ row }) => isLeft(results.get(keyOf(row))))
  const toggle = (row: Ballot) => setTicked((before) => flipped(before, keyOf(row)))
  const places = new Set(alike.map(({ read }) => placeOf(read)))
  const marks = { ticked, results, toggle: begun ? undefined : toggle }
  return (
    <BulkFrame
      title={words.titles[verdict](chosen.length, noun)}
      danger={verdict === 'reject'}
      count={chosen.length}
      left={left.length}
      confirmed={stale ? confirmed : undefined}
      reason={{ place: `bulk ${verdict}`, ...commentOn(verdict) }}
      button={words.buttons[verdict](chosen.length, noun)}
      send={(comment) => void send(left, comment)}
      {...{ close, sending, begun, words }}
    >
      {alike[0] ? (
        <section aria-label={words.alike(alike.length, nounOf([alike[0].row]))} className="flex flex-col gap-2">
          <h3 className="font-semibold">{words.alike(alike.length, nounOf([alike[0].row]))}</h3>
          <Change read={alike[0].read} />
          <Items items={alike} shown={places.size > 1 ? 'place' : undefined} {...marks} />
        </section>
      ) : (
        <p>{words.none}</p>
      )}
      {apart.length > 0 ? (
        <section aria-label={words.apart} className="flex flex-col gap-2">
          <h3 className="font-semibold">{words.apart}</h3>
          <Items items={apart} shown="change" {...marks} />
        </section>
      ) : null}
      <LeftOut alone={alone} unread={unread} verdict={verdict} elsewhere={elsewhere} out={out} />
    </BulkFrame>
  )
}

/** A rejection needs a comment. */
const commentOn = (verdict: Together) =>
  verdict === 'reject'
    ? { label: tDecide.gate.comment, missing: tDecide.gate.comment_needed }
    : { label: tDecide.gate.comment_optional, missing: undefined }
