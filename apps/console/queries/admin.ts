import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { paging, reading } from '../api/read.ts'

/** Reads of the administration. All keys share a prefix: a change of one item affects others, so all are read again. */
export const usersQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['admin', 'users', q],
    placeholderData: keepPreviousData,
    ...paging('/v1/admin/users', { query: { page_size: 50, ...(q === '' ? {} : { q }) } }),
  })

/** The people that a choice offers: the first 500 active ones. */
export const peopleQuery = () =>
  queryOptions({
    queryKey: ['admin', 'people'],
    queryFn: reading('/v1/admin/users', { query: { page_size: 500, status: 'ACTIVE' } }),
  })

export const userQuery = (user_id: string) =>
  queryOptions({
    queryKey: ['admin', 'user', user_id],
    queryFn: reading('/v1/admin/users/{user_id}', { path: { user_id } }),
  })

export const userSessionsQuery = (user_id: string) =>
  queryOptions({
    queryKey: ['admin', 'sessions', user_id],
    queryFn: reading('/v1/admin/users/{user_id}/sessions', { path: { user_id } }),
  })

export const groupsQuery = () =>
  infiniteQueryOptions({ queryKey: ['admin', 'groups'], ...paging('/v1/admin/groups', { query: { page_size: 100 } }) })

export const grantsQuery = () =>
  infiniteQueryOptions({ queryKey: ['admin', 'grants'], ...paging('/v1/admin/grants', { query: { page_size: 100 } }) })

export const machinesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'machines'],
    ...paging('/v1/admin/machines', { query: { page_size: 50 } }),
  })

export const changesQuery = () =>
  infiniteQueryOptions({
    queryKey: ['admin', 'changes'],
    refetchInterval: 15_000,
    ...paging('/v1/admin/changes', { query: { page_size: 50 } }),
  })

/** Roles and their permissions, which change only with a release. */
export const rolesQuery = () =>
  queryOptions({ queryKey: ['roles'], staleTime: Number.POSITIVE_INFINITY, queryFn: reading('/v1/admin/roles') })
