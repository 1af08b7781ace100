import type { ViewList } from '../../shared/contracts/identity/views.ts'
import { queryOf } from '../api/read.ts'

/** The person's saved searches, read again when a page with a list opens. */
export const viewsQuery = () => queryOf(['views'], '/v1/users/me/views', {}, { refetchOnWindowFocus: true })

const PATHS = { inbox: '/inbox', operations: '/operations', resources: '/resources' } as const satisfies Record<
  ViewList,
  string
>

/** The page that shows a view. Its parser of search parameters drops those it does not know. */
export const placeOf = ({ list, filters }: { list: ViewList; filters: Record<string, string> }) => ({
  to: PATHS[list],
  search: filters as never,
})
