import { keepPreviousData } from '@tanstack/react-query'
import { pagesOf, queryOf } from '../api/read.ts'

/** Reads of intents, schedules, plans and patches. The key's first word is the noun; live frames find the cached reply by it. */
export const intentsQuery = (whose: 'mine' | 'all') =>
  pagesOf(
    ['intents', whose],
    '/v1/intents',
    { query: { page_size: 50, ...(whose === 'mine' ? { requester: 'me' } : {}) } },
    { placeholderData: keepPreviousData },
  )

export const intentQuery = (intent_id: string) =>
  queryOf(['intent', intent_id], '/v1/intents/{intent_id}', { path: { intent_id } })

export const schedulesQuery = () =>
  pagesOf(['schedules'], '/v1/schedules', { query: { page_size: 50 } }, { refetchInterval: 30_000 })

/** No frame reports changes of a schedule, so it is polled while it is shown. */
export const scheduleQuery = (schedule_id: string) =>
  queryOf(
    ['schedule', schedule_id],
    '/v1/schedules/{schedule_id}',
    { path: { schedule_id } },
    { refetchInterval: 5_000 },
  )

/** Procedures of the loaded packs, which change only when operations restarts. */
export const proceduresQuery = () => queryOf(['procedures'], '/v1/procedures', {}, { staleTime: 60_000 })

/** Agents and their lives: no frame reports them, so they are polled while they are shown. */
export const agentsQuery = () => queryOf(['agents'], '/v1/agents', {}, { refetchInterval: 10_000 })

/** Every version of every pack, with its use. */
export const packsQuery = () => queryOf(['packs'], '/v1/packs')

export const planQuery = (plan_id: string) => queryOf(['plan', plan_id], '/v1/plans/{plan_id}', { path: { plan_id } })

/** The drawing of a plan; a plan never changes. */
export const planGraphQuery = (plan_id: string) =>
  queryOf(
    ['plan-graph', plan_id],
    '/v1/plans/{plan_id}/graph',
    { path: { plan_id } },
    { staleTime: Number.POSITIVE_INFINITY },
  )

/** Every patch of an operation, in the order of proposal. */
export const patchesQuery = (operation_id: string) =>
  pagesOf(['patches', operation_id], '/v1/operations/{operation_id}/patches', {
    path: { operation_id },
    query: { page_size: 100 },
  })

export const patchQuery = (operation_id: string, patch_id: string) =>
  queryOf(['patch', operation_id, patch_id], '/v1/operations/{operation_id}/patches/{patch_id}', {
    path: { operation_id, patch_id },
  })
