import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { graphQuery, timelineQuery } from '../api/queries.ts'
import { tOperation } from '../i18n/operation.ts'
import { EventTable, useAllPages } from '../parts/event-table.tsx'
import { Failure } from '../parts/failure.tsx'
import { Empty, Loading } from '../parts/page.tsx'

const WHO = ['people', 'system', 'all'] as const

/** Every act of people and system on one operation: who, what, why, with what it said, and its record in the evidence. */
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
  const names = new Map(graph?.nodes.map(({ node_id, name }) => [node_id, name]))
  return (
    <section className="card" aria-labelledby="acts">
      <div className="card-head justify-between">
        <h2 id="acts" className="card-title">
          {tOperation.activity.title}
        </h2>
        <fieldset className="choices" aria-label={tOperation.timeline.filter}>
          {WHO.map((choice) => (
            <button
              key={choice}
              type="button"
              aria-pressed={who === choice}
              onClick={() => void navigate({ search: { who: choice }, replace: true, resetScroll: false })}
            >
              {tOperation.activity.who[choice]}
            </button>
          ))}
        </fieldset>
      </div>
      {timeline.isPending ? <Loading /> : null}
      {timeline.isError ? <Failure error={timeline.error} retry={() => void timeline.refetch()} /> : null}
      {timeline.isSuccess && events.length === 0 ? <Empty>{tOperation.activity.empty}</Empty> : null}
      {events.length > 0 ? <EventTable operation_id={operation_id} events={events} names={names} whole /> : null}
    </section>
  )
}
