import type { FetchResponse, ParamsOption } from 'openapi-fetch'
import { api, type BelowApi, read } from './client.ts'

type Path = { [P in keyof BelowApi]: BelowApi[P] extends { get: object } ? P : never }[keyof BelowApi]
type Get<P extends Path> = BelowApi[P] extends { get: infer Operation extends object } ? Operation : never
type Params<P extends Path> = ParamsOption<Get<P>>['params']
type Reply<P extends Path> = NonNullable<FetchResponse<Get<P>, object, `${string}/${string}`>['data']>
type Asked = { signal: AbortSignal }
type Given<P extends Path> = undefined extends Params<P> ? [params?: Params<P>] : [params: Params<P>]

const get = api.GET as (path: Path, init: object) => Parameters<typeof read>[0]

/** A query function that reads a path of the API. */
export const reading =
  <P extends Path>(path: P, ...[params]: Given<P>) =>
  ({ signal }: Asked) =>
    read(get(path, { params, signal })) as Promise<Reply<P>>

/** The options of a paged list: its first page, the next one, and the function that reads a page. */
export const paging = <P extends Path>(path: P, params: Params<P>) => ({
  initialPageParam: '',
  getNextPageParam: (last: { next_page_token?: string | null }) => last.next_page_token || undefined,
  queryFn: ({ pageParam, signal }: Asked & { pageParam: string }) => {
    const { query = {}, ...given }: { query?: object } = params ?? {}
    const page = pageParam === '' ? query : { ...query, page_token: pageParam }
    return read(get(path, { params: { ...given, query: page }, signal })) as Promise<Reply<P>>
  },
})
