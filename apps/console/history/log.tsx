import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { Choices } from '../forms/choices.tsx'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { Empty } from '../ui/page.tsx'
import { tOperation } from '../words/operation.ts'
import { EventTable } from './table.tsx'
import type { Entry } from './words.ts'

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
  events: Entry[]
  names: ReadonlyMap<string, string>
  whole?: boolean
}) => {
  const aside = <Choices label={tOperation.timeline.filter} choices={choices} chosen={chosen} choose={choose} />
  return (
    <Card title={title} aside={aside}>
      <Unread query={timeline} />
      {timeline.isSuccess && table.events.length === 0 ? <Empty>{empty}</Empty> : null}
      {table.events.length > 0 ? <EventTable {...table} /> : null}
    </Card>
  )
}
