import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import { PAGED, pageOf } from './pages.ts'

/** Reads of intents, schedules, plans and patches. The key's first word is the noun; live frames find the cached reply by it. */
export const intentsQuery = (whose: 'mine' | 'all') =>
  infiniteQueryOptions({
    queryKey: ['intents', whose],
    ...PAGED,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/intents', {
          params: { query: { page_size: 50, ...(whose === 'mine' ? { requester: 'me' } : {}), ...pageOf(pageParam) } },
          signal,
        }),
      ),
  })

export const schedulesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['schedules'],
    ...PAGED,
    refetchInterval: 30_000,
    queryFn: ({ pageParam, signal }) =>
      read(api.GET('/v1/schedules', { params: { query: { page_size: 50, ...pageOf(pageParam) } }, signal })),
  })

/** No frame tells of a schedule: it is read again while it is shown. */
export const scheduleQuery = (schedule_id: string) =>
  queryOptions({
    queryKey: ['schedule', schedule_id],
    refetchInterval: 5_000,
    queryFn: ({ signal }) =>
      read(api.GET('/v1/schedules/{schedule_id}', { params: { path: { schedule_id } }, signal })),
  })

/** Procedures of the loaded packs; they change with a release only. */
export const proceduresQuery = () =>
  queryOptions({
    queryKey: ['procedures'],
    staleTime: 60_000,
    queryFn: ({ signal }) => read(api.GET('/v1/procedures', { signal })),
  })

export const planQuery = (plan_id: string) =>
  queryOptions({
    queryKey: ['plan', plan_id],
    queryFn: ({ signal }) => read(api.GET('/v1/plans/{plan_id}', { params: { path: { plan_id } }, signal })),
  })

/** The drawing of a plan; a plan never changes. */
export const planGraphQuery = (plan_id: string) =>
  queryOptions({
    queryKey: ['plan-graph', plan_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => read(api.GET('/v1/plans/{plan_id}/graph', { params: { path: { plan_id } }, signal })),
  })

/** Every patch of an operation, in the order of proposal. */
export const patchesQuery = (operation_id: string) =>
  infiniteQueryOptions({
    queryKey: ['patches', operation_id],
    ...PAGED,
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/patches', {
          params: { path: { operation_id }, query: { page_size: 100, ...pageOf(pageParam) } },
          signal,
        }),
      ),
  })

export const patchQuery = (operation_id: string, patch_id: string) =>
  queryOptions({
    queryKey: ['patch', operation_id, patch_id],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/operations/{operation_id}/patches/{patch_id}', {
          params: { path: { operation_id, patch_id } },
          signal,
        }),
      ),
  })
