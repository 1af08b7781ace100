import { useLocation, useMatch, useNavigate } from '@tanstack/react-router'
import { ArrowDown, Download } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { VList } from 'virtua'
import type { LogLine } from '../../shared/contracts/client/frames.ts'
import { ProblemError, problemOf } from '../api/client.ts'
import { fetchBytes, saveAs } from '../api/download.ts'
import { Button } from '../forms/button.tsx'
import { Check } from '../forms/select.tsx'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { Empty, Loading } from '../ui/page.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { hrefOf, lineOf, type Range, rangeOf } from './line.tsx'
import { useLog } from './lines.ts'
import { type Folds, ROW, useFolds, useScroll } from './scroll.ts'
import { LogSearch, useSearch } from './search.tsx'
import { useSelect } from './select.ts'

type LogViewProps = {
  operation_id: string
  node_id: string
  attempt: number
  open: boolean
  /** It then opens at its first error. */
  failed: boolean
}

/** The lines that the address names. */
const useRange = (): Range | null => {
  const hash = useLocation({ select: (location) => location.hash })
  return useMemo(() => rangeOf(hash), [hash])
}

/** Once a line is named, so is its attempt: a retry then neither moves the reader nor changes what a link shows. */
const useNamedAttempt = (attempt: number, range: Range | null) => {
  const navigate = useNavigate()
  const named = useLocation({ select: ({ search }) => (search as { attempt?: number }).attempt })
  // The address is ahead of the page: while another one loads, or names an attempt, it is not this page's to change.
  const own = useMatch({ strict: false, shouldThrow: false, select: ({ pathname }) => pathname })
  const leaves = useLocation({ select: ({ pathname }) => pathname !== own })
  useEffect(() => {
    if (range === null || named !== undefined || leaves) return
    const search = (before: object) => ({ ...before, attempt })
    void navigate({ ...{ to: '.', search, hash: true, replace: true, resetScroll: false, hashScrollIntoView: false } })
  }, [attempt, range, named, leaves, navigate])
}

type Log = ReturnType<typeof useLog>
type Scroll = ReturnType<typeof useScroll>

/** The field that went to a line gives its keys to the log, which may have been on another tab; never what is typed. */
const takeFocus = () => {
  const { activeElement: field } = document
  if (field instanceof HTMLInputElement && field.matches('.topbar [role=combobox]') && field.value === '')
    document.querySelector<HTMLElement>('.log :is(.log-lines, .log-lines > *)[tabindex]')?.focus()
}

/** Goes to the line of the link, unless it is `selected`; without one, a failed attempt opens at its first error. */
const useStart = (
  log: Log,
  scroll: Scroll,
  { range, failed, selected }: { range: Range | null; failed: boolean; selected: React.RefObject<number | undefined> },
) => {
  const from = log.loading ? undefined : range?.from
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another link moves the view
  useEffect(() => {
    if (from !== undefined && from !== selected.current) void scroll.go(from).then(takeFocus)
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
}

/** The log of one attempt. Opens at the end and follows only there; scrolling up loads older lines. */
export const LogView = ({ operation_id, node_id, attempt, open, failed }: LogViewProps) => {
  const log = useLog(operation_id, node_id, attempt)
  const folds = useFolds(log.lines)
  const scroll = useScroll(log, folds)
  const search = useSearch(log.search, (seq) => void scroll.go(seq))
  const [wrap, setWrap] = useState(true)
  const [times, setTimes] = useState(true)
  const range = useRange()
  useNamedAttempt(attempt, range)
  const select = useSelect(folds, scroll, attempt)
  /** Where a selection by keys begins: its lines are in view. */
  const selected = useRef<number>(undefined)
  useStart(log, scroll, { range, failed, selected })
  const [said, setSaid] = useState('')
  const toError = async (place: 'after_seq' | 'before_seq') => {
    const here = scroll.found ?? (place === 'after_seq' ? 0 : log.total + 1)
    const seq = await log.nearest('error', { [place]: here })
    setSaid(seq === undefined ? tOperation.logs.no_error : '')
    if (seq !== undefined) await scroll.go(seq)
  }
  const copy = (text: string) =>
    navigator.clipboard.writeText(text).then(
      () => setSaid(t.copied),
      () => setSaid(tOperation.logs.not_copied),
    )
  const copyRange = async () => {
    if (range === null) return setSaid(tOperation.logs.select_first)
    await log.within(range).then(
      (lines) => copy(textOf(lines)),
      (thrown) => setSaid(problemOf(thrown).title),
    )
  }
  const extend = (by: 1 | -1) => {
    const { from, to } = select(by)
    selected.current = from
    setSaid(tOperation.logs.selected(from, to))
  }
  const press = (event: React.KeyboardEvent) => {
    // The field that goes to a line takes this key as its first letter.
    if (event.key === ':') document.querySelector<HTMLElement>('.topbar [role=combobox]')?.focus()
    const act = new Map<string, () => unknown>([
      ['e', () => toError('after_seq')],
      ['E', () => toError('before_seq')],
      ['f', scroll.follow],
      ['n', () => search.step?.(1)],
      ['N', () => search.step?.(-1)],
      ['t', () => setTimes(!times)],
      ['w', () => setWrap(!wrap)],
      ['y', () => copy(hrefOf(attempt, location.hash))],
      ['c', copyRange],
      ['Shift ArrowDown', () => extend(1)],
      ['Shift ArrowUp', () => extend(-1)],
    ]).get(event.shiftKey && event.key.length > 1 ? `Shift ${event.key}` : event.key)
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
        <Total {...{ log, scroll, open }} />
        <span className="flex-1" />
        <LogSearch search={search} />
        <Check on={wrap} change={setWrap}>
          {tOperation.logs.wrap}
        </Check>
        <Check on={times} change={setTimes}>
          {tOperation.logs.times}
        </Check>
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
        <FewLines {...{ ended: log.complete, folds, scroll, attempt, range, wrap, times, press }} />
      ) : (
        <Lines {...{ ended: log.complete, folds, scroll, attempt, range, wrap, times, press }} />
      )}
    </section>
  )
}

const Total = ({ log, scroll, open }: { log: Log; scroll: Scroll; open: boolean }) => (
  <span className="text-muted tabular-nums">
    {tOperation.logs.total(Math.max(log.total, scroll.last))}
    {open ? (scroll.following ? `, ${tOperation.logs.live}` : '') : log.complete ? `, ${tOperation.logs.complete}` : ''}
  </span>
)

type LinesProps = {
  ended: boolean
  folds: Folds
  scroll: Scroll
  attempt: number
  range: Range | null
  wrap: boolean
  times: boolean
  press: (event: React.KeyboardEvent) => void
}

const textOf = (lines: readonly LogLine[]): string => lines.map(({ text }) => `${text}\n`).join('')

/** A log that has ended with so few lines takes no more room than they do. */
export const FEW = 20

const FewLines = ({ folds, scroll, wrap, press, ...shown }: LinesProps) => (
  <section
    className={`log-lines few ${wrap ? 'wrapped' : ''}`}
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    tabIndex={0}
    aria-label={tOperation.logs.lines}
    onKeyDown={press}
  >
    {folds.rows.map(lineOf(folds, scroll, shown))}
  </section>
)

const Lines = ({ ended, folds, scroll, wrap, press, ...shown }: LinesProps) => (
  <div className="relative">
    {/* A log that has ended takes no more room than its lines. */}
    <div className="log-lines" style={ended ? { maxHeight: (folds.rows.length + 2) * ROW } : undefined}>
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
          if (event.shiftKey || !['End', 'Home', 'PageUp', 'ArrowUp'].includes(event.key)) return press(event)
          event.preventDefault()
          if (event.key === 'End') scroll.follow()
          else if (event.key === 'Home') void scroll.go(1)
          else scroll.leave(event.key === 'PageUp' ? 'page' : 'line')
        }}
      >
        {folds.rows.map(lineOf(folds, scroll, shown))}
      </VList>
    </div>
    {!scroll.following && scroll.news > 0 ? (
      <Button look="main log-pill" onClick={scroll.follow}>
        <ArrowDown size={14} aria-hidden="true" />
        {tOperation.logs.new_lines(scroll.news)}
      </Button>
    ) : null}
  </div>
)

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
      <Button onClick={() => void save()}>
        <Download size={14} aria-hidden="true" />
        {tOperation.logs.download}
      </Button>
    </>
  )
}
