import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read } from './client.ts'
import type { PlatformHealth } from './types.ts'

export type Part = PlatformHealth['parts'][number]

/** Resources that are not healthy, the worst first. */
export const unhealthyQuery = () =>
  infiniteQueryOptions({
    queryKey: ['resources', 'unhealthy'],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      read(
        api.GET('/v1/resources', {
          params: {
            path: {},
            query: {
              page_size: 100,
              health_status: ['unhealthy', 'degraded'],
              sort: '-health_status,resource_id',
              ...(pageParam === '' ? {} : { page_token: pageParam }),
            },
          },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

const EVERY_MS = 15_000

/** What the platform's processes last said of themselves, asked again while one looks. */
export const partsQuery = () =>
  queryOptions({
    queryKey: ['platform-health'],
    refetchInterval: EVERY_MS,
    queryFn: ({ signal }) => read(api.GET('/v1/platform/health', { params: { path: {} }, signal })),
  })
