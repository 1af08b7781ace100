import { infiniteQueryOptions, type keepPreviousData, type QueryKey, queryOptions } from '@tanstack/react-query'
import type { FetchResponse, ParamsOption } from 'openapi-fetch'
import { api, type BelowApi, read } from './client.ts'

type Path = { [P in keyof BelowApi]: BelowApi[P] extends { get: object } ? P : never }[keyof BelowApi]
type Get<P extends Path> = BelowApi[P] extends { get: infer Operation extends object } ? Operation : never
type Params<P extends Path> = ParamsOption<Get<P>>['params']
type Reply<P extends Path> = NonNullable<FetchResponse<Get<P>, object, `${string}/${string}`>['data']>
type Asked = { signal: AbortSignal }

const get = api.GET as (path: Path, init: object) => Parameters<typeof read>[0]

/** A query function that reads a path of the API. */
export const reading =
  <P extends Path>(path: P, params: Params<P>) =>
  ({ signal }: Asked) =>
    read(get(path, { params, signal })) as Promise<Reply<P>>

/** Reads any page of a paged list, such as for an export. */
export const pageOf =
  <P extends Path>(path: P, query: object) =>
  (page: { page_size: number; page_token?: string }) =>
    read(get(path, { params: { query: { ...query, ...page } } })) as Promise<Reply<P>>

type Asking<P extends Path> =
  undefined extends Params<P> ? [params?: Params<P>, kept?: Kept] : [params: Params<P>, kept?: Kept]
type Kept = {
  staleTime?: number
  refetchInterval?: number
  refetchOnWindowFocus?: boolean
  structuralSharing?: false
  placeholderData?: typeof keepPreviousData
}

/** The query that reads a path of the API. The key's first word is the noun; live frames find the cached reply by it. */
export const queryOf = <const Key extends QueryKey, P extends Path>(queryKey: Key, path: P, ...given: Asking<P>) => {
  const [params, kept = {}] = given as [Params<P>, Kept?]
  return queryOptions({ queryKey, queryFn: reading(path, params), ...kept })
}

/** The query that reads a paged list of the API, page by page. */
export const pagesOf = <const Key extends QueryKey, P extends Path>(
  queryKey: Key,
  path: P,
  params: Params<P>,
  kept: Kept = {},
) =>
  infiniteQueryOptions({
    queryKey,
    initialPageParam: '',
    getNextPageParam: (last: { next_page_token?: string | null }) => last.next_page_token || undefined,
    queryFn: ({ pageParam, signal }) => {
      const { query = {}, ...given }: { query?: object } = params ?? {}
      const page = pageParam === '' ? query : { ...query, page_token: pageParam }
      return read(get(path, { params: { ...given, query: page }, signal })) as Promise<Reply<P>>
    },
    ...kept,
  })
