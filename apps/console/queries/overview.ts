import { keepPreviousData } from '@tanstack/react-query'
import { pagesOf, queryOf } from '../api/read.ts'

export type OverviewDays = 14 | 30 | 90
/** Whose operations the overview is about; an empty one is any. */
export type OverviewWhere = { env?: string | undefined; region?: string | undefined }
const inWords = ({ env, region }: OverviewWhere) => ({
  ...(env && { environment: env }),
  ...(region && { region_id: region }),
})

/** Past, running and planned operations. */
export const overviewQuery = (days: OverviewDays, where: OverviewWhere) =>
  queryOf(
    ['overview', days, where],
    '/v1/overview',
    { query: { days, ...inWords(where) } },
    { placeholderData: keepPreviousData, refetchInterval: 60_000 },
  )

/** The newest operations that run; frames bring its rows forward as those of any list of operations. */
export const runningQuery = (where: OverviewWhere) =>
  pagesOf(['operations', 'running now', where], '/v1/operations', {
    query: { ...inWords(where), status: ['running'], sort: '-created_at', page_size: 10 },
  })

/** Operations that a failure or moved targets hold. */
export const heldQuery = (where: OverviewWhere) =>
  queryOf(
    ['inbox', 'held', where],
    '/v1/waiting',
    { query: { for: 'all', ...inWords(where) } },
    { refetchInterval: 60_000 },
  )

/** Windows and freezes. */
export const calendarQuery = () => queryOf(['calendar'], '/v1/calendar', {}, { refetchInterval: 60_000 })
