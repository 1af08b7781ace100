import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'

export type OverviewDays = 14 | 30 | 90

/** What ran, what runs and what is planned. */
export const overviewQuery = (days: OverviewDays) =>
  queryOptions({
    queryKey: ['overview', days],
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
    queryFn: ({ signal }) => read(api.GET('/v1/overview', { params: { query: { days } }, signal })),
  })

/** Windows and freezes. */
export const calendarQuery = () =>
  queryOptions({ queryKey: ['calendar'], queryFn: ({ signal }) => read(api.GET('/v1/calendar', { signal })) })
