import type { useChanges } from '../account/changes.tsx'
import { queryOf } from '../api/read.ts'

/** The person's own rules, destinations and messages, or those of a group. */
export type Whose = { group?: string }
/** What a part of the page needs to change something. */
export type PartProps = { whose: Whose; busy: boolean; act: ReturnType<typeof useChanges>['act'] }

export const destinationsQuery = (whose: Whose) =>
  queryOf(['notifications', 'destinations', whose], '/v1/notifications/destinations', { query: whose })

export const rulesQuery = (whose: Whose) =>
  queryOf(['notifications', 'rules', whose], '/v1/notifications/rules', { query: whose })

export const secretQuery = (destination_id: string, whose: Whose) =>
  queryOf(['notifications', 'secret', destination_id], '/v1/notifications/destinations/{destination_id}/secret', {
    path: { destination_id },
    query: whose,
  })

/** The latest messages; a queued one changes without a frame. */
export const deliveriesQuery = (whose: Whose) =>
  queryOf(
    ['notifications', 'deliveries', whose],
    '/v1/notifications/deliveries',
    { query: { page_size: 10, ...whose } },
    { refetchInterval: 5000 },
  )

/** How this browser is notified of decisions. */
export const pushQuery = () => queryOf(['notifications', 'push'], '/v1/notifications/push')

/** The path of a part of the API, for a person or a group. */
export const pathFor = ({ group }: Whose, part: string): string =>
  `/api/v1/notifications/${part}${group === undefined ? '' : `?group=${encodeURIComponent(group)}`}`
