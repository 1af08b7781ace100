import { pagesOf, queryOf } from '../api/read.ts'

/** Reads about the signed-in person. The key's first word is the noun; live frames find the cached reply by it. */
/** The signed-in person, their permissions, and how much waits for them. */
export const meQuery = () => queryOf(['me'], '/v1/me')

/** The sessions of the person. */
export const sessionsQuery = () => queryOf(['sessions'], '/v1/sessions')

/** Patches to vote on, failures that hold an operation, and deadlines, which come near without a frame. */
export const waitingQuery = (whose: 'me' | 'all') =>
  queryOf(['inbox', 'waiting', whose], '/v1/waiting', { query: { for: whose } }, { refetchInterval: 60_000 })

/** How many gates, patches and failures wait for the person: the number in the title and beside the inbox. */
export const waitingFor = (counts: Counts): number => counts.gates_mine + counts.patches_mine + counts.failures_mine
type Counts = { gates_mine: number; patches_mine: number; failures_mine: number }

/** The service accounts that the person answers for. */
export const ownMachinesQuery = () => pagesOf(['machines'], '/v1/users/me/machines', { query: { page_size: 50 } })

/** Why one of them got no token. */
export const ownRefusalsQuery = (machine_id: string) =>
  pagesOf(['refusals', machine_id], '/v1/users/me/machines/{machine_id}/refusals', {
    path: { machine_id },
    query: { page_size: 20 },
  })

/** Where messages reach the person; the page of notifications reads the same. */
export const ownDestinationsQuery = () =>
  queryOf(
    ['notifications', 'destinations', {}],
    '/v1/notifications/destinations',
    { query: {} },
    { staleTime: 300_000 },
  )

/** The passkeys of the person. */
export const passkeysQuery = () => queryOf(['passkeys'], '/v1/users/me/passkeys')

/** The provider identities by which the person may sign in. */
export const identitiesQuery = () => queryOf(['identities'], '/v1/users/me/identities')

/** Whether the person has an authenticator app. */
export const totpQuery = () => queryOf(['totp'], '/v1/users/me/totp')

export const inboxQuery = (whose: 'me' | 'all') =>
  pagesOf(['inbox', whose], '/v1/gates', { query: { status: 'waiting', for: whose, sort: 'deadline', page_size: 50 } })
