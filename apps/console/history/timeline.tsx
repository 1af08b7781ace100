import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { nodesQuery, operationQuery, timelineQuery } from '../queries/operations.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { Failure } from '../ui/failure.tsx'
import { Loading } from '../ui/page.tsx'
import { tOperation } from '../words/operation.ts'
import { Gantt } from './gantt.tsx'
import { EventLog } from './log.tsx'
import { isAboutPeople, isProblem } from './words.ts'

/** The timeline: bars per node, and every event with who and why. */
export const OperationTimelinePage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { kinds } = useSearch({ from: '/shell/operations/$operation_id/timeline' })
  const navigate = useNavigate({ from: '/operations/$operation_id/timeline' })
  const operation = useQuery(operationQuery(operation_id)).data
  const nodes = useInfiniteQuery(nodesQuery(operation_id))
  const timeline = useInfiniteQuery(timelineQuery(operation_id))
  useAllPages(nodes)
  useAllPages(timeline)
  const rows = rowsOf(nodes)
  const events = (timeline.data?.pages.flatMap((page) => page.events) ?? [])
    .filter((event) => (kinds === 'people' ? isAboutPeople(event) : kinds === 'problems' ? isProblem(event) : true))
    .reverse()
  const names = new Map(rows.map((row) => [row.node_id, row.name]))
  return (
    <>
      <Card title={tOperation.timeline.gantt} note={tOperation.timeline.gantt_note}>
        {nodes.isPending ? <Loading rows={2} /> : null}
        {nodes.isError ? <Failure error={nodes.error} retry={() => void nodes.refetch()} /> : null}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
        <section className="max-h-96 overflow-y-auto pb-2" tabIndex={0} aria-label={tOperation.timeline.gantt}>
          {nodes.data ? <Gantt rows={rows} ended_at={operation?.ended_at ?? null} /> : null}
        </section>
      </Card>
      <EventLog
        title={tOperation.timeline.events}
        empty={tOperation.timeline.empty}
        choices={tOperation.timeline.kinds}
        chosen={kinds ?? 'all'}
        choose={(choice) =>
          void navigate({ search: choice === 'all' ? {} : { kinds: choice }, replace: true, resetScroll: false })
        }
        timeline={timeline}
        operation_id={operation_id}
        events={events}
        names={names}
      />
    </>
  )
}
