import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { paging, reading } from '../api/read.ts'

/** Reads of intents, schedules, plans and patches. The key's first word is the noun; live frames find the cached reply by it. */
export const intentsQuery = (whose: 'mine' | 'all') =>
  infiniteQueryOptions({
    queryKey: ['intents', whose],
    placeholderData: keepPreviousData,
    ...paging('/v1/intents', { query: { page_size: 50, ...(whose === 'mine' ? { requester: 'me' } : {}) } }),
  })

export const schedulesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['schedules'],
    refetchInterval: 30_000,
    ...paging('/v1/schedules', { query: { page_size: 50 } }),
  })

/** No frame reports changes of a schedule, so it is polled while it is shown. */
export const scheduleQuery = (schedule_id: string) =>
  queryOptions({
    queryKey: ['schedule', schedule_id],
    refetchInterval: 5_000,
    queryFn: reading('/v1/schedules/{schedule_id}', { path: { schedule_id } }),
  })

/** Procedures of the loaded packs, which change only when operations restarts. */
export const proceduresQuery = () =>
  queryOptions({ queryKey: ['procedures'], staleTime: 60_000, queryFn: reading('/v1/procedures') })

/** Every version of every pack, with its use. */
export const packsQuery = () => queryOptions({ queryKey: ['packs'], queryFn: reading('/v1/packs') })

export const planQuery = (plan_id: string) =>
  queryOptions({ queryKey: ['plan', plan_id], queryFn: reading('/v1/plans/{plan_id}', { path: { plan_id } }) })

/** The drawing of a plan; a plan never changes. */
export const planGraphQuery = (plan_id: string) =>
  queryOptions({
    queryKey: ['plan-graph', plan_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: reading('/v1/plans/{plan_id}/graph', { path: { plan_id } }),
  })

/** Every patch of an operation, in the order of proposal. */
export const patchesQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['patches', operation_id],
    ...paging('/v1/operations/{operation_id}/patches', { path: { operation_id }, query: { page_size: 100 } }),
  })

export const patchQuery = (operation_id: string, patch_id: string) =>
  queryOptions({
    queryKey: ['patch', operation_id, patch_id],
    queryFn: reading('/v1/operations/{operation_id}/patches/{patch_id}', { path: { operation_id, patch_id } }),
  })
