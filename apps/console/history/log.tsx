import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { useId } from 'react'
import type { TimelineEvent } from '../api/types.ts'
import { Choices } from '../forms/choices.tsx'
import { Failure } from '../ui/failure.tsx'
import { Empty, Loading } from '../ui/page.tsx'
import { tOperation } from '../words/operation.ts'
import { EventTable } from './table.tsx'

/** The events of an operation, newest first, with a filter. */
export const EventLog = <T extends string>({
  title,
  empty,
  choices,
  chosen,
  choose,
  timeline,
  ...table
}: {
  title: string
  empty: string
  choices: Readonly<Record<T, string>>
  chosen: T
  choose: (choice: T) => void
  timeline: UseInfiniteQueryResult
  operation_id: string
  events: TimelineEvent[]
  names: ReadonlyMap<string, string>
  whole?: boolean
}) => {
  const id = useId()
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head justify-between">
        <h2 id={id} className="card-title">
          {title}
        </h2>
        <Choices label={tOperation.timeline.filter} choices={choices} chosen={chosen} choose={choose} />
      </div>
      {timeline.isPending ? <Loading /> : null}
      {timeline.isError ? <Failure error={timeline.error} retry={() => void timeline.refetch()} /> : null}
      {timeline.isSuccess && table.events.length === 0 ? <Empty>{empty}</Empty> : null}
      {table.events.length > 0 ? <EventTable {...table} /> : null}
    </section>
  )
}
