import { ArrowDown, Download } from 'lucide-react'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { VList, type VListHandle } from 'virtua'
import type { LogLine } from '../../shared/contracts/client/frames.ts'
import { problemFrom } from '../../shared/contracts/client/problem.ts'
import { ProblemError, withSession } from '../api/client.ts'
import { clockTime } from '../api/format.ts'
import { useLog } from '../api/log.ts'
import { useDisplay } from '../api/prefs.ts'
import { t } from '../i18n/index.ts'
import { runsOf } from './ansi.ts'
import { Failure, ProblemText } from './failure.tsx'
import { Empty, Loading } from './page.tsx'

const ROW = 20
const AT_END = 24

/** The log of one attempt. Opens at the end and follows only there; older lines come when they are scrolled to. */
export const LogView = ({
  operation_id,
  node_id,
  attempt,
  open,
}: {
  operation_id: string
  node_id: string
  attempt: number
  open: boolean
}) => {
  const log = useLog(operation_id, node_id, attempt)
  const list = useRef<VListHandle>(null)
  const [following, setFollowing] = useState(true)
  const [seen, setSeen] = useState(0)
  const [wrap, setWrap] = useState(true)
  const [times, setTimes] = useState(true)
  const last = log.lines.at(-1)?.seq ?? 0
  const first = log.lines[0]?.seq ?? 1
  const prepending = useRef(false)

  useEffect(() => {
    if (!following || log.lines.length === 0) return
    setSeen(last)
    list.current?.scrollToIndex(log.lines.length - 1, { align: 'end' })
  }, [following, last, log.lines.length])

  const scrolled = (offset: number) => {
    const { scrollSize = 0, viewportSize = 0 } = list.current ?? {}
    const atEnd = offset + viewportSize >= scrollSize - AT_END
    setFollowing(atEnd)
    if (atEnd) setSeen(last)
    if (offset < ROW * 10 && first > 1 && !prepending.current) {
      prepending.current = true
      void log.older().finally(() => {
        prepending.current = false
      })
    }
  }
  if (log.loading) return <Loading rows={1} />
  if (log.problem !== null && log.lines.length === 0)
    return <Failure error={new ProblemError(log.problem)} retry={() => void log.again()} />
  const news = last - seen
  return (
    <section className="card log" aria-label={t.logs.label}>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2 text-table">
        <span className="text-muted tabular-nums">
          {t.logs.total(Math.max(log.total, last))}
          {open ? (following ? `, ${t.logs.live}` : '') : log.complete ? `, ${t.logs.complete}` : ''}
        </span>
        <span className="flex-1" />
        <label className="flex items-center gap-1.5">
          <input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.target.checked)} />
          {t.logs.wrap}
        </label>
        <label className="flex items-center gap-1.5">
          <input type="checkbox" checked={times} onChange={(event) => setTimes(event.target.checked)} />
          {t.logs.times}
        </label>
        <RawLog operation_id={operation_id} node_id={node_id} attempt={attempt} />
      </div>
      {log.problem ? (
        <div className="border-b border-line p-4">
          <ProblemText problem={log.problem} />
        </div>
      ) : null}
      {log.lines.length === 0 ? (
        <Empty>{t.logs.empty}</Empty>
      ) : (
        <div className="relative">
          <section
            className="log-lines"
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
            tabIndex={0}
            aria-label={t.logs.label}
            onKeyDown={(event) => event.key === 'End' && setFollowing(true)}
          >
            <VList ref={list} shift={prepending.current} onScroll={scrolled} className={wrap ? 'wrapped' : ''}>
              {log.lines.map((line) => (
                <Line key={line.seq} line={line} times={times} />
              ))}
            </VList>
          </section>
          {!following && news > 0 ? (
            <button type="button" className="button main log-pill" onClick={() => setFollowing(true)}>
              <ArrowDown size={14} aria-hidden="true" />
              {t.logs.new_lines(news)}
            </button>
          ) : null}
        </div>
      )}
    </section>
  )
}

const Line = memo(({ line, times }: { line: LogLine; times: boolean }) => {
  const { zone } = useDisplay()
  const runs = useMemo(() => runsOf(line.text), [line.text])
  return (
    <div className={`log-line ${line.level === 'error' ? 'error' : line.level === 'warn' ? 'warn' : ''}`}>
      <span className="log-seq">{line.seq}</span>
      {times ? (
        <time dateTime={line.time} className="log-time">
          {clockTime(Date.parse(line.time), zone, true)}
        </time>
      ) : null}
      <span className="log-text">
        {line.level === 'error' || line.level === 'warn' ? <span className="log-level">{line.level} </span> : null}
        {runs.map((run, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the runs of a line never change
          <span key={at} className={run.className}>
            {run.text}
          </span>
        ))}
        {line.cut ? <span className="text-muted"> ({t.logs.cut})</span> : null}
      </span>
    </div>
  )
})

/** Saves the stored bytes; asked with the session, so no token ever stands in a link. */
const RawLog = ({ operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number }) => {
  const [failed, setFailed] = useState<string | null>(null)
  const save = async () => {
    const path = `/api/v1/operations/${encodeURIComponent(operation_id)}/nodes/${encodeURIComponent(node_id)}/logs/raw?attempt=${attempt}`
    try {
      const answer = await withSession(new Request(path), 60_000)
      if (!answer.ok) return setFailed(problemFrom(answer.status, await answer.json().catch(() => null)).detail)
      const url = URL.createObjectURL(await answer.blob())
      const link = document.createElement('a')
      link.href = url
      link.download = `${node_id}-${attempt}.log`
      link.click()
      setTimeout(() => URL.revokeObjectURL(url), 1000)
      setFailed(null)
    } catch {
      setFailed(t.problem.offline)
    }
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
        {t.logs.download}
      </button>
    </>
  )
}
