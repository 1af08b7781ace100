import { memo, useMemo } from 'react'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { tOperation } from '../words/operation.ts'
import { runsOf } from './ansi.ts'
import type { Drawn } from './folds.ts'
import type { Folds } from './scroll.ts'

export type Range = { from: number; to: number }
/** `L3` or `L3-L5`: the lines that a link names. */
export const rangeOf = (hash: string): Range | null => {
  const [, from, to = from] = /^L(\d{1,9})(?:-L(\d{1,9}))?$/.exec(hash) ?? []
  if (from === undefined) return null
  return { from: Math.min(Number(from), Number(to)), to: Math.max(Number(from), Number(to)) }
}
export const isIn = (range: Range | null, seq: number): boolean =>
  range !== null && seq >= range.from && seq <= range.to

/** The address of a line, which names its attempt: another one may be the newest when it is opened. */
export const hrefOf = (attempt: number, hash: string): string => {
  const link = new URL(location.href)
  link.searchParams.set('attempt', String(attempt))
  link.hash = hash
  return link.href
}

/** A press puts this line into the address; with Shift, all lines from the one already there. */
const name = (event: React.MouseEvent, seq: number) => {
  if (event.ctrlKey || event.metaKey) return
  event.preventDefault()
  const first = event.shiftKey ? (rangeOf(location.hash.slice(1))?.from ?? seq) : seq
  location.hash = first === seq ? `L${seq}` : `L${Math.min(first, seq)}-L${Math.max(first, seq)}`
}

type Shown = { attempt: number; range: Range | null; times: boolean }

/** Draws one line of a log. */
export const lineOf =
  ({ turn }: Folds, { found }: { found: number | undefined }, { attempt, range, times }: Shown) =>
  (row: Drawn) => {
    const { seq } = row.line
    const marked = seq === found || isIn(range, seq)
    return <Line key={seq} {...row} turn={turn} attempt={attempt} times={times} found={marked} />
  }

type LineProps = Drawn & { turn: Folds['turn']; attempt: number; times: boolean; found: boolean }
const Line = memo(({ line, fold, open, turn, attempt, times, found }: LineProps) => {
  const { zone } = useDisplay()
  return (
    <div
      className={`log-line ${line.level === 'error' ? 'error' : line.level === 'warn' ? 'warn' : ''} ${found ? 'found' : ''}`}
      aria-current={found ? 'true' : undefined}
    >
      <a
        className="log-seq"
        href={hrefOf(attempt, `L${line.seq}`)}
        tabIndex={-1}
        aria-label={tOperation.logs.line(line.seq)}
        onClick={(event) => name(event, line.seq)}
      >
        {line.seq}
      </a>
      {times ? (
        <time dateTime={line.time} className="log-time">
          {clockTime(Date.parse(line.time), zone, true)}
        </time>
      ) : null}
      <span className="log-text">
        {line.level === 'error' || line.level === 'warn' ? (
          <span className="log-level">{tOperation.logs.levels[line.level]} </span>
        ) : null}
        {fold ? (
          <button type="button" className="log-fold" aria-expanded={open} onClick={() => turn(fold.seq, !open)}>
            <LogText text={fold.title} />
          </button>
        ) : (
          <LogText text={line.text} />
        )}
        {fold ? <span className="text-muted"> {tOperation.logs.total(fold.count)}</span> : null}
        {fold?.errors ? <span className="log-level text-bad">, {tOperation.logs.errors(fold.errors)}</span> : null}
        {line.cut ? <span className="text-muted"> ({tOperation.logs.cut})</span> : null}
      </span>
    </div>
  )
})

/** The text of a line in its ANSI colors. */
export const LogText = ({ text }: { text: string }) => {
  const runs = useMemo(() => runsOf(text), [text])
  return runs.map((run, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the runs of a line never change
    <span key={at} className={run.className}>
      {run.text}
    </span>
  ))
}
