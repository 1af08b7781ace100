import { keepPreviousData } from '@tanstack/react-query'
import { queryOf } from '../api/read.ts'

export type OverviewDays = 14 | 30 | 90

/** Past, running and planned operations. */
export const overviewQuery = (days: OverviewDays) =>
  queryOf(
    ['overview', days],
    '/v1/overview',
    { query: { days } },
    { placeholderData: keepPreviousData, refetchInterval: 60_000 },
  )

/** Windows and freezes. */
export const calendarQuery = () => queryOf(['calendar'], '/v1/calendar', {}, { refetchInterval: 60_000 })
