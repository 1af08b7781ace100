import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { graphQuery, operationQuery, timelineQuery } from '../queries/operations.ts'
import { useAllPages } from '../queries/pages.ts'
import { tOperation } from '../words/operation.ts'
import { AttemptsCard } from './attempts.tsx'
import { EventLog } from './log.tsx'
import { foldedByNode, isAboutPeople, isProblem, namesIn } from './words.ts'

/** The timeline: attempts and waits of each node, the critical path, and every event with who and why. */
export const OperationTimelinePage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const search = useSearch({ from: '/shell/operations/$operation_id/timeline' })
  const navigate = useNavigate({ from: '/operations/$operation_id/timeline' })
  const operation = useQuery(operationQuery(operation_id)).data
  const graph = useQuery(graphQuery(operation_id))
  const timeline = useInfiniteQuery(timelineQuery(operation_id))
  useAllPages(timeline)
  const { kinds, why, rows, from, to } = search
  const show = (change: Partial<typeof search>, replace = false) =>
    void navigate({
      search: Object.fromEntries(Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined)),
      replace,
      resetScroll: false,
    })
  const all = timeline.data?.pages.flatMap((page) => page.events) ?? []
  const events = all
    .filter(kinds === 'people' ? isAboutPeople : kinds === 'problems' ? isProblem : () => true)
    .reverse()
  return (
    <>
      <AttemptsCard
        operation_id={operation_id}
        ended_at={operation?.ended_at ?? null}
        graph={graph}
        events={timeline.hasNextPage ? [] : all}
        why={why}
        only={rows}
        viewed={{ from, to }}
        view={({ from, to }) => show({ from, to }, true)}
        explain={(node_id) => show({ why: node_id })}
        keep={(choice) => show({ rows: choice })}
      />
      <EventLog
        title={tOperation.timeline.events}
        empty={tOperation.timeline.empty}
        choices={tOperation.timeline.kinds}
        chosen={kinds ?? 'all'}
        choose={(choice) => show({ kinds: choice === 'all' ? undefined : choice })}
        timeline={timeline}
        operation_id={operation_id}
        events={kinds === undefined ? foldedByNode(events) : events}
        names={namesIn(graph.data)}
      />
    </>
  )
}
