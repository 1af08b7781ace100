import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { graphQuery, timelineQuery } from '../queries/operations.ts'
import { useAllPages } from '../queries/pages.ts'
import { tOperation } from '../words/operation.ts'
import { EventLog } from './log.tsx'
import { namesIn } from './words.ts'

/** Every action of people and the system on one operation: who, object, reason, comment, and its evidence record. */
export const OperationActivityPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { who = 'people' } = useSearch({ from: '/shell/operations/$operation_id/activity' })
  const navigate = useNavigate({ from: '/operations/$operation_id/activity' })
  const graph = useQuery(graphQuery(operation_id)).data
  const timeline = useInfiniteQuery(timelineQuery(operation_id))
  useAllPages(timeline)
  const events = (timeline.data?.pages.flatMap((page) => page.events) ?? [])
    .filter(({ actor }) => who === 'all' || (actor.kind === 'user') === (who === 'people'))
    .reverse()
  return (
    <EventLog
      title={tOperation.activity.title}
      empty={tOperation.activity.empty}
      choices={tOperation.activity.who}
      chosen={who}
      choose={(choice) => void navigate({ search: { who: choice }, resetScroll: false })}
      timeline={timeline}
      operation_id={operation_id}
      events={events}
      names={namesIn(graph)}
      whole
    />
  )
}
