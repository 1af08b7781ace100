import { keepPreviousData } from '@tanstack/react-query'
import { pagesOf, queryOf } from '../api/read.ts'

/** Reads of the administration. All keys share a prefix: a change of one item affects others, so all are read again. */
export const usersQuery = (q: string) =>
  pagesOf(
    ['admin', 'users', q],
    '/v1/admin/users',
    { query: { page_size: 50, ...(q === '' ? {} : { q }) } },
    { placeholderData: keepPreviousData },
  )

/** The people that a choice offers: active ones with this part of a name, at most 500. */
export const peopleQuery = (q: string) =>
  queryOf(
    ['admin', 'people', q],
    '/v1/admin/users',
    { query: { page_size: 500, status: 'ACTIVE', ...(q === '' ? {} : { q }) } },
    { placeholderData: keepPreviousData },
  )

export const userQuery = (user_id: string) =>
  queryOf(['admin', 'user', user_id], '/v1/admin/users/{user_id}', { path: { user_id } })

export const userSessionsQuery = (user_id: string) =>
  queryOf(['admin', 'sessions', user_id], '/v1/admin/users/{user_id}/sessions', { path: { user_id } })

export const userIdentitiesQuery = (user_id: string) =>
  queryOf(['admin', 'identities', user_id], '/v1/admin/users/{user_id}/identities', { path: { user_id } })

export const groupsQuery = () => pagesOf(['admin', 'groups'], '/v1/admin/groups', { query: { page_size: 100 } })

export const grantsQuery = () => pagesOf(['admin', 'grants'], '/v1/admin/grants', { query: { page_size: 100 } })

export const machinesQuery = () => pagesOf(['admin', 'machines'], '/v1/admin/machines', { query: { page_size: 50 } })

/** Why a machine got no token. */
export const refusalsQuery = (machine_id: string) =>
  pagesOf(['refusals', machine_id], '/v1/admin/machines/{machine_id}/refusals', {
    path: { machine_id },
    query: { page_size: 20 },
  })

export const providersQuery = () => queryOf(['admin', 'providers'], '/v1/admin/providers', {})

/** What open gates would lose if these rights were taken away, read anew for each dialog. */
export const losingQuery = (removed: { user_id?: string; group?: string; grant_id?: string }) =>
  queryOf(['admin', 'losing', removed], '/v1/gates/losing', { query: removed }, { staleTime: 0 })

/** Whom no provider signs in. */
export const unlinkedQuery = () =>
  pagesOf(['admin', 'unlinked'], '/v1/admin/unlinked-users', { query: { page_size: 50 } })

/** Reading a test sign-in is recorded: it is read once. */
export const trialQuery = (trial: string) =>
  queryOf(
    ['provider-trial', trial],
    '/v1/admin/provider-trials/{trial}',
    { path: { trial } },
    { staleTime: Number.POSITIVE_INFINITY, refetchOnWindowFocus: false },
  )

export const changesQuery = () =>
  pagesOf(['admin', 'changes'], '/v1/admin/changes', { query: { page_size: 50 } }, { refetchInterval: 15_000 })

/** The newest of those that wait for a second administrator. */
export const pendingChangesQuery = () =>
  queryOf(
    ['admin', 'changes', 'pending'],
    '/v1/admin/changes',
    { query: { status: 'pending', page_size: 50 } },
    { refetchInterval: 60_000 },
  )

/** Roles and their permissions, which change only with a release. */
export const rolesQuery = () => queryOf(['roles'], '/v1/admin/roles', {}, { staleTime: Number.POSITIVE_INFINITY })
