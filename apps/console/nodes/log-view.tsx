import { useLocation } from '@tanstack/react-router'
import { ArrowDown, Download } from 'lucide-react'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { VList, type VListHandle } from 'virtua'
import type { LogLine } from '../../shared/contracts/client/frames.ts'
import { ProblemError } from '../api/client.ts'
import { fetchBytes, saveAs } from '../api/download.ts'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { Empty, Loading } from '../ui/page.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { runsOf } from './ansi.ts'
import { useLog } from './log.ts'
import { LogSearch } from './log-search.tsx'

/** The height of an unwrapped line. A wrong guess moves the list when lines are measured, and undoes a scroll. */
const ROW = 20
const AT_END = 24

type Log = ReturnType<typeof useLog>

/** The visible part of a log: its end while it is followed, otherwise the place that was scrolled to or found. */
const useScroll = (log: Log) => {
  const list = useRef<VListHandle>(null)
  const [following, setFollowing] = useState(true)
  const [seen, setSeen] = useState(0)
  const [found, setFound] = useState<{ seq: number } | null>(null)
  const last = log.lines.at(-1)?.seq ?? 0
  const first = log.lines[0]?.seq ?? 1
  const prepending = useRef(false)
  /** Moving to a line: meanwhile scroll events do not count, and the line is shown once. */
  const going = useRef(false)

  useEffect(() => {
    if (!following || log.lines.length === 0) return
    setSeen(last)
    list.current?.scrollToIndex(log.lines.length - 1, { align: 'end' })
  }, [following, last, log.lines.length])

  // Runs after the render that added the line.
  useEffect(() => {
    if (!going.current || found === null) return
    going.current = false
    const at = log.lines.findIndex(({ seq }) => seq === found.seq)
    if (at >= 0) list.current?.scrollToIndex(at, { align: 'center' })
  }, [found, log.lines])

  const scrolled = (offset: number) => {
    if (going.current) return
    const { scrollSize = 0, viewportSize = 0 } = list.current ?? {}
    const atEnd = offset + viewportSize >= scrollSize - AT_END
    setFollowing(atEnd)
    if (atEnd) setSeen(last)
    if (atEnd && last < log.total) void log.newer()
    if (offset < ROW * 10 && first > 1 && !prepending.current) {
      prepending.current = true
      void log.older().finally(() => {
        prepending.current = false
      })
    }
  }
  /** Shows any line of the log; the End key or the pill returns to following the end. */
  const go = async (seq: number) => {
    going.current = true
    setFound(null)
    setFollowing(false)
    await log.reach(seq)
    setFound({ seq })
  }
  const follow = () => {
    going.current = false
    setFollowing(true)
  }
  /** Scrolls away from the end by key. A native scroll would be undone while the list measures lines at its end. */
  const leave = (by: 'line' | 'page') => {
    going.current = false
    setFollowing(false)
    list.current?.scrollBy(-(by === 'page' ? Math.max(list.current.viewportSize - 2 * ROW, ROW) : 2 * ROW))
  }
  return { list, following, follow, leave, news: last - seen, last, found: found?.seq, prepending, scrolled, go }
}

type Range = { from: number; to: number }
/** `L3` or `L3-L5`: the lines that a link names. */
const rangeOf = (hash: string): Range | null => {
  const [, from, to = from] = /^L(\d{1,9})(?:-L(\d{1,9}))?$/.exec(hash) ?? []
  if (from === undefined) return null
  return { from: Math.min(Number(from), Number(to)), to: Math.max(Number(from), Number(to)) }
}
const isIn = (range: Range | null, seq: number): boolean => range !== null && seq >= range.from && seq <= range.to

/** A press puts this line into the address; with Shift, all lines from the one already there. */
const name = (event: React.MouseEvent, seq: number) => {
  const first = rangeOf(location.hash.slice(1))?.from
  if (!event.shiftKey || first === undefined) return
  event.preventDefault()
  location.hash = `L${Math.min(first, seq)}-L${Math.max(first, seq)}`
}

type LogViewProps = {
  operation_id: string
  node_id: string
  attempt: number
  open: boolean
  /** It then opens at its first error. */
  failed: boolean
}

/** The log of one attempt. Opens at the end and follows only there; scrolling up loads older lines. */
export const LogView = ({ operation_id, node_id, attempt, open, failed }: LogViewProps) => {
  const log = useLog(operation_id, node_id, attempt)
  const scroll = useScroll(log)
  const [wrap, setWrap] = useState(true)
  const [times, setTimes] = useState(true)
  const hash = useLocation({ select: (location) => location.hash })
  const range = useMemo(() => rangeOf(hash), [hash])
  const from = log.loading ? undefined : range?.from
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another link moves the view
  useEffect(() => {
    if (from !== undefined) void scroll.go(from)
  }, [from])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it opens
  useEffect(() => {
    if (log.loading || !failed || range !== null) return
    const toFirst = async () => {
      const error = await log.nearest('error', { after_seq: 0 })
      const seq = error ?? (await log.nearest('warn', { after_seq: 0 }))
      if (seq !== undefined) await scroll.go(seq)
    }
    void toFirst()
  }, [log.loading])
  const [said, setSaid] = useState('')
  const toError = async (place: 'after_seq' | 'before_seq') => {
    const here = scroll.found ?? (place === 'after_seq' ? 0 : log.total + 1)
    const seq = await log.nearest('error', { [place]: here })
    setSaid(seq === undefined ? tOperation.logs.no_error : '')
    if (seq !== undefined) await scroll.go(seq)
  }
  const copy = async (what: string) => {
    await navigator.clipboard?.writeText(what)
    setSaid(t.copied)
  }
  const press = (event: React.KeyboardEvent) => {
    const act = new Map<string, () => unknown>([
      ['e', () => toError('after_seq')],
      ['E', () => toError('before_seq')],
      ['f', scroll.follow],
      ['t', () => setTimes(!times)],
      ['w', () => setWrap(!wrap)],
      ['y', () => copy(location.href)],
      ['c', () => copy(textOf(log.lines.filter(({ seq }) => isIn(range, seq))))],
    ]).get(event.key)
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    void act()
  }
  if (log.loading) return <Loading rows={1} />
  if (log.problem !== null && log.lines.length === 0)
    return <Failure error={new ProblemError(log.problem)} retry={() => void log.again()} />
  return (
    <section className="card log" aria-label={tOperation.logs.label}>
      <div role="status" className="sr-only">
        {said}
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2 text-table">
        <span className="text-muted tabular-nums">
          {tOperation.logs.total(Math.max(log.total, scroll.last))}
          {open
            ? scroll.following
              ? `, ${tOperation.logs.live}`
              : ''
            : log.complete
              ? `, ${tOperation.logs.complete}`
              : ''}
        </span>
        <span className="flex-1" />
        <LogSearch search={log.search} go={(seq) => void scroll.go(seq)} />
        <Tick word={tOperation.logs.wrap} on={wrap} set={setWrap} />
        <Tick word={tOperation.logs.times} on={times} set={setTimes} />
        <RawLog operation_id={operation_id} node_id={node_id} attempt={attempt} />
      </div>
      {log.problem ? (
        <div className="border-b border-line p-4">
          <ProblemText problem={log.problem} />
        </div>
      ) : null}
      {log.lines.length === 0 ? (
        <Empty>{tOperation.logs.empty}</Empty>
      ) : log.complete && log.total <= FEW ? (
        <FewLines lines={log.lines} {...{ scroll, range, wrap, times, press }} />
      ) : (
        <Lines lines={log.lines} {...{ scroll, range, wrap, times, press }} />
      )}
    </section>
  )
}

export const Tick = ({ word, on, set }: { word: string; on: boolean; set: (on: boolean) => void }) => (
  <label className="flex items-center gap-1.5">
    <input type="checkbox" checked={on} onChange={(event) => set(event.target.checked)} />
    {word}
  </label>
)

type LinesProps = {
  lines: LogLine[]
  scroll: ReturnType<typeof useScroll>
  range: Range | null
  wrap: boolean
  times: boolean
  press: (event: React.KeyboardEvent) => void
}

const textOf = (lines: readonly LogLine[]): string => lines.map(({ text }) => `${text}\n`).join('')

/** A log that has ended with so few lines takes no more room than they do. */
const FEW = 20

const FewLines = ({ lines, scroll, range, wrap, times, press }: LinesProps) => (
  <section
    className={`log-lines few ${wrap ? 'wrapped' : ''}`}
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    tabIndex={0}
    aria-label={tOperation.logs.lines}
    onKeyDown={press}
  >
    {lines.map((line) => (
      <Line key={line.seq} line={line} times={times} found={line.seq === scroll.found || isIn(range, line.seq)} />
    ))}
  </section>
)

const Lines = ({ lines, scroll, range, wrap, times, press }: LinesProps) => (
  <div className="relative">
    <div className="log-lines">
      {/*
        The box that scrolls is the one that takes the focus. The browser's own scroll by these keys may come after the
        next one: a late End would follow the end again.
      */}
      <VList
        ref={scroll.list}
        itemSize={ROW}
        shift={scroll.prepending.current}
        onScroll={scroll.scrolled}
        className={wrap ? 'wrapped' : ''}
        tabIndex={0}
        role="region"
        aria-label={tOperation.logs.lines}
        onKeyDown={(event) => {
          if (!['End', 'Home', 'PageUp', 'ArrowUp'].includes(event.key)) return press(event)
          event.preventDefault()
          if (event.key === 'End') scroll.follow()
          else if (event.key === 'Home') void scroll.go(1)
          else scroll.leave(event.key === 'PageUp' ? 'page' : 'line')
        }}
      >
        {lines.map((line) => (
          <Line key={line.seq} line={line} times={times} found={line.seq === scroll.found || isIn(range, line.seq)} />
        ))}
      </VList>
    </div>
    {!scroll.following && scroll.news > 0 ? (
      <button type="button" className="button main log-pill" onClick={scroll.follow}>
        <ArrowDown size={14} aria-hidden="true" />
        {tOperation.logs.new_lines(scroll.news)}
      </button>
    ) : null}
  </div>
)

const Line = memo(({ line, times, found }: { line: LogLine; times: boolean; found: boolean }) => {
  const { zone } = useDisplay()
  return (
    <div
      className={`log-line ${line.level === 'error' ? 'error' : line.level === 'warn' ? 'warn' : ''} ${found ? 'found' : ''}`}
      aria-current={found ? 'true' : undefined}
    >
      <a
        className="log-seq"
        href={`#L${line.seq}`}
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
        {line.level === 'error' || line.level === 'warn' ? <span className="log-level">{line.level} </span> : null}
        <LogText text={line.text} />
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

export const rawLogPath = (operation_id: string, node_id: string, attempt: number): string =>
  `/v1/operations/${encodeURIComponent(operation_id)}/nodes/${encodeURIComponent(node_id)}/logs/raw?attempt=${attempt}`

/** Saves the stored bytes. The session authorizes the request, so no link contains a token. */
const RawLog = ({ operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number }) => {
  const [failed, setFailed] = useState<string | null>(null)
  const save = async () => {
    const got = await fetchBytes(rawLogPath(operation_id, node_id, attempt))
    setFailed('problem' in got ? got.problem.detail : null)
    if ('blob' in got) saveAs(got.blob, `${node_id}-${attempt}.log`)
  }
  return (
    <>
      {failed ? (
        <span role="alert" className="text-bad">
          {failed}
        </span>
      ) : null}
      <button type="button" className="button" onClick={() => void save()}>
        <Download size={14} aria-hidden="true" />
        {tOperation.logs.download}
      </button>
    </>
  )
}
