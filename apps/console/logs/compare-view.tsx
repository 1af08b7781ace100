import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { VList } from 'virtua'
import { ProblemError } from '../api/client.ts'
import { fetchBytes } from '../api/download.ts'
import { Check } from '../forms/select.tsx'
import { inWorker } from '../kit/in-worker.ts'
import { Unread } from '../ui/failure.tsx'
import { Empty } from '../ui/page.tsx'
import { tOperation } from '../words/operation.ts'
import type { Pair } from './compare.ts'
import { LogText } from './line.tsx'
import { FEW, rawLogPath } from './view.tsx'

type CompareProps = { operation_id: string; node_id: string; before: number; after: number }

const linesOf = async (path: string): Promise<string[]> => {
  const got = await fetchBytes(path)
  if ('problem' in got) throw new ProblemError(got.problem)
  return (await got.blob.text()).split('\n').slice(0, -1)
}

const compareQuery = ({ operation_id, node_id, before, after }: CompareProps) => ({
  queryKey: ['log-pairs', operation_id, node_id, before, after],
  queryFn: async (): Promise<Pair[]> => {
    const read = (attempt: number) => linesOf(rawLogPath(operation_id, node_id, attempt))
    const [{ default: url }, ...logs] = await Promise.all([
      import('./compare.worker.ts?worker&url'),
      read(before),
      read(after),
    ])
    return inWorker<Pair[]>(url, { before: logs[0], after: logs[1] })
  },
})

/** The logs of two attempts side by side. Lines that differ only in times, durations and ids count as the same. */
export const CompareView = (props: CompareProps) => {
  const { before, after } = props
  const [different, setDifferent] = useState(true)
  const query = useQuery(compareQuery(props))
  if (query.data === undefined) return <Unread query={query} rows={1} />
  const count = query.data.filter(({ same }) => !same).length
  const shown = different ? query.data.filter(({ same }) => !same) : query.data
  return (
    <section className="card log" aria-label={tOperation.compare.label(before, after)}>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-2 text-table">
        <span role="status">{tOperation.compare.differ(count, query.data.length)}</span>
        <span className="text-muted">{tOperation.compare.masked}</span>
        <span className="flex-1" />
        <Check on={different} change={setDifferent}>
          {tOperation.compare.only}
        </Check>
      </div>
      <div className="log-pair border-b border-line py-1 text-table font-medium">
        <span>{tOperation.compare.attempt(before)}</span>
        <span>{tOperation.compare.attempt(after)}</span>
      </div>
      {shown.length === 0 ? (
        <Empty>{tOperation.compare.same}</Empty>
      ) : shown.length <= FEW ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        <section className="log-lines few wrapped" tabIndex={0} aria-label={tOperation.logs.lines}>
          {shown.map(pairOf)}
        </section>
      ) : (
        <div className="log-lines">
          <VList className="wrapped" tabIndex={0} role="region" aria-label={tOperation.logs.lines}>
            {shown.map(pairOf)}
          </VList>
        </div>
      )}
    </section>
  )
}

const pairOf = (pair: Pair) => (
  <div key={`${pair.before?.seq}/${pair.after?.seq}`} className={pair.same ? 'log-pair' : 'log-pair differs'}>
    <Side line={pair.before} />
    <Side line={pair.after} />
  </div>
)

const Side = ({ line }: { line: Pair['before'] }) => (
  <div className="log-line">
    <span className="log-seq">{line?.seq}</span>
    <span className="log-text">{line ? <LogText text={line.text} /> : null}</span>
  </div>
)
