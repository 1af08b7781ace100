import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import { PAGED, pageOf } from './pages.ts'

/** Reads of the administration. All keys begin alike: a change of one thing shows in others, so all are read again. */
export const usersQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['admin', 'users', q],
    ...PAGED,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) => {
      const query = { page_size: 50, ...(q === '' ? {} : { q }), ...pageOf(pageParam) }
      return read(api.GET('/v1/admin/users', { params: { query }, signal }))
    },
  })

/** The people that a choice offers: the first 500 by name. */
export const peopleQuery = () =>
  queryOptions({
    queryKey: ['admin', 'people'],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/admin/users', { params: { query: { page_size: 500, status: 'ACTIVE' } }, signal })),
  })

export const userQuery = (user_id: string) =>
  queryOptions({
    queryKey: ['admin', 'user', user_id],
    queryFn: ({ signal }) => read(api.GET('/v1/admin/users/{user_id}', { params: { path: { user_id } }, signal })),
  })

export const userSessionsQuery = (user_id: string) =>
  queryOptions({
    queryKey: ['admin', 'sessions', user_id],
    queryFn: ({ signal }) =>
      read(api.GET('/v1/admin/users/{user_id}/sessions', { params: { path: { user_id } }, signal })),
  })

export const groupsQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'groups'],
    ...PAGED,
    queryFn: ({ pageParam, signal }) =>
      read(api.GET('/v1/admin/groups', { params: { query: { page_size: 100, ...pageOf(pageParam) } }, signal })),
  })

export const grantsQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'grants'],
    ...PAGED,
    queryFn: ({ pageParam, signal }) =>
      read(api.GET('/v1/admin/grants', { params: { query: { page_size: 100, ...pageOf(pageParam) } }, signal })),
  })

export const machinesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'machines'],
    ...PAGED,
    queryFn: ({ pageParam, signal }) =>
      read(api.GET('/v1/admin/machines', { params: { query: { page_size: 50, ...pageOf(pageParam) } }, signal })),
  })

export const changesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'changes'],
    ...PAGED,
    refetchInterval: 15_000,
    queryFn: ({ pageParam, signal }) =>
      read(api.GET('/v1/admin/changes', { params: { query: { page_size: 50, ...pageOf(pageParam) } }, signal })),
  })

/** Roles and their permissions; they change with a release only. */
export const rolesQuery = () =>
  queryOptions({
    queryKey: ['roles'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => read(api.GET('/v1/admin/roles', { signal })),
  })
