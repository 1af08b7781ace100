import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { reading } from '../api/read.ts'

export type OverviewDays = 14 | 30 | 90

/** Past, running and planned operations. */
export const overviewQuery = (days: OverviewDays) =>
  queryOptions({
    queryKey: ['overview', days],
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
    queryFn: reading('/v1/overview', { query: { days } }),
  })

/** Windows and freezes. */
export const calendarQuery = () => queryOptions({ queryKey: ['calendar'], queryFn: reading('/v1/calendar') })
