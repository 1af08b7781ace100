import { queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'

/** Reads about the person who is signed in. The key's first word is the noun; live frames find the cached reply by it. */
/** The signed-in person, their permissions, and the number of gates that need their vote. */
export const meQuery = () =>
  queryOptions({ queryKey: ['me'], queryFn: ({ signal }) => read(api.GET('/v1/me', { signal })) })

/** The sessions of the person. */
export const sessionsQuery = () =>
  queryOptions({ queryKey: ['sessions'], queryFn: ({ signal }) => read(api.GET('/v1/sessions', { signal })) })

export const inboxQuery = (whose: 'me' | 'all') =>
  queryOptions({
    queryKey: ['inbox', whose],
    queryFn: ({ signal }) =>
      read(
        api.GET('/v1/gates', {
          params: { query: { status: 'waiting', for: whose, sort: 'deadline', page_size: 100 } },
          signal,
        }),
      ),
  })
