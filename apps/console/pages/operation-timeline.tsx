import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { nodesQuery, operationQuery, timelineQuery } from '../api/queries.ts'
import type { TimelineEvent } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { eventWords, isAboutPeople, isProblem } from '../parts/event-words.ts'
import { Failure } from '../parts/failure.tsx'
import { Gantt } from '../parts/gantt.tsx'
import { Empty, Loading } from '../parts/page.tsx'
import { Person } from '../parts/person.tsx'
import { ShapeIcon } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

/** What happened when: bars per node, and every event with who and why. */
export const OperationTimelinePage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { kinds } = useSearch({ from: '/shell/operations/$operation_id/timeline' })
  const navigate = useNavigate({ from: '/operations/$operation_id/timeline' })
  const operation = useQuery(operationQuery(operation_id)).data
  const nodes = useInfiniteQuery(nodesQuery(operation_id))
  const timeline = useInfiniteQuery(timelineQuery(operation_id))
  useAllPages(nodes)
  useAllPages(timeline)
  const rows = nodes.data?.pages.flatMap((page) => page.items) ?? []
  const events = (timeline.data?.pages.flatMap((page) => page.events) ?? [])
    .filter((event) => (kinds === 'people' ? isAboutPeople(event) : kinds === 'problems' ? isProblem(event) : true))
    .reverse()
  const names = new Map(rows.map((row) => [row.node_id, row.name]))
  return (
    <>
      <section className="card" aria-labelledby="bars">
        <div className="card-head">
          <h2 id="bars" className="card-title">
            {t.timeline.gantt}
          </h2>
          <p className="text-table text-muted">{t.timeline.gantt_note}</p>
        </div>
        {nodes.isPending ? <Loading rows={2} /> : null}
        {nodes.isError ? <Failure error={nodes.error} retry={() => void nodes.refetch()} /> : null}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
        <section className="max-h-96 overflow-y-auto pb-2" tabIndex={0} aria-label={t.timeline.gantt}>
          {nodes.data ? <Gantt rows={rows} ended_at={operation?.ended_at ?? null} /> : null}
        </section>
      </section>
      <section className="card" aria-labelledby="events">
        <div className="card-head justify-between">
          <h2 id="events" className="card-title">
            {t.timeline.events}
          </h2>
          <fieldset className="choices" aria-label={t.timeline.filter}>
            {(['all', 'people', 'problems'] as const).map((choice) => (
              <button
                key={choice}
                type="button"
                aria-pressed={(kinds ?? 'all') === choice}
                onClick={() =>
                  void navigate({
                    search: choice === 'all' ? {} : { kinds: choice },
                    replace: true,
                    resetScroll: false,
                  })
                }
              >
                {t.timeline.kinds[choice]}
              </button>
            ))}
          </fieldset>
        </div>
        {timeline.isPending ? <Loading /> : null}
        {timeline.isError ? <Failure error={timeline.error} retry={() => void timeline.refetch()} /> : null}
        {timeline.isSuccess && events.length === 0 ? <Empty>{t.timeline.empty}</Empty> : null}
        {events.length > 0 ? <Events events={events} names={names} operation_id={operation_id} /> : null}
      </section>
    </>
  )
}

const Events = ({
  events,
  names,
  operation_id,
}: {
  events: TimelineEvent[]
  names: ReadonlyMap<string, string>
  operation_id: string
}) => (
  <table className="table cards">
    <caption className="sr-only">{t.timeline.caption}</caption>
    <thead>
      <tr>
        <th scope="col">{t.timeline.at}</th>
        <th scope="col">{t.timeline.event}</th>
        <th scope="col">{t.timeline.about}</th>
        <th scope="col">{t.timeline.who}</th>
      </tr>
    </thead>
    <tbody>
      {events.map((event) => {
        const { shape, tone, words } = eventWords(event)
        return (
          <tr key={event.seq}>
            <td data-label={t.timeline.at} className="whitespace-nowrap tabular-nums">
              <TimeText at={event.at} form="clock" />
            </td>
            <td className="lead" data-label={t.timeline.event}>
              <span className="flex items-start gap-2">
                <span className="mt-px">
                  <ShapeIcon shape={shape} tone={tone} />
                </span>
                <span className="min-w-0 wrap-anywhere">
                  {words}
                  {event.reason ? <span className="text-muted">: “{event.reason}”</span> : null}
                </span>
              </span>
            </td>
            <td data-label={t.timeline.about} className="wrap-anywhere">
              {event.node_id ? (
                <Link
                  to="/operations/$operation_id/nodes/$node_id"
                  params={{ operation_id, node_id: event.node_id }}
                  search={{ tab: 'summary' }}
                >
                  {names.get(event.node_id) ?? event.node_id}
                </Link>
              ) : event.gate_id ? (
                <Link to="/operations/$operation_id/gates/$gate_id" params={{ operation_id, gate_id: event.gate_id }}>
                  {event.gate_id}
                </Link>
              ) : null}
            </td>
            <td data-label={t.timeline.who}>
              <Person who={event.actor} />
            </td>
          </tr>
        )
      })}
    </tbody>
  </table>
)

function useAllPages(list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }): void {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
}
