import { queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import type { PlatformHealth } from '../api/types.ts'

export type Part = PlatformHealth['parts'][number]

const EVERY_MS = 15_000

/** The last report of each process of the platform, read again while the page is visible. */
export const partsQuery = () =>
  queryOptions({
    queryKey: ['platform-health'],
    refetchInterval: EVERY_MS,
    queryFn: ({ signal }) => read(api.GET('/v1/platform/health', { signal })),
  })
