import { type Principal, type PrincipalSource, principalOf } from '../shared/auth/principals.ts'
import type { Principal as PrincipalMessage } from '../shared/contracts/gen/auth_pb.ts'
import { throwFromRpc } from '../shared/rpc/client.ts'

/** The calls of identity's client (rpc.ts) needed to say who could decide. */
export type ApproverSource = PrincipalSource & {
  listPrincipals: (request: {
    role?: string
    groupKey?: string
    pageSize: number
    pageToken: string
  }) => Promise<{ principals: PrincipalMessage[]; nextPageToken: string }>
}

const FRESH_MS = 15_000
const PAGE = 500

/** Who holds gate:decide somewhere: shown to readers, never used to decide. Cached briefly; empty without identity. */
export const createApprovers = (source: ApproverSource, monotonic: () => number = () => performance.now()) => {
  let known: Principal[] = []
  let is_whole = false
  let read_at = Number.NEGATIVE_INFINITY
  let running: Promise<Principal[]> | undefined

  const load = async (): Promise<Principal[]> => {
    const asked = { role: 'approver', pageSize: PAGE, pageToken: '' }
    const { principals, nextPageToken } = await source.listPrincipals(asked)
    is_whole = nextPageToken === ''
    known = principals.map(principalOf).filter(({ user }) => user.status === 'ACTIVE')
    return known
  }

  const list = (): Promise<Principal[]> => {
    if (monotonic() - read_at < FRESH_MS) return Promise.resolve(known)
    running ??= load()
      .catch(() => {
        is_whole = false
        return known
      })
      .finally(() => {
        read_at = monotonic()
        running = undefined
      })
    return running
  }

  return {
    list,
    /** `undefined` while identity is away, or if there are more than one page. */
    listAll: async (): Promise<Principal[] | undefined> => {
      const all = await list()
      return is_whole ? all : undefined
    },
    drop: () => {
      read_at = Number.NEGATIVE_INFINITY
    },
  }
}
export type Approvers = ReturnType<typeof createApprovers>

/** Whether an active account is in a group of this key. Throws while identity is away. */
export const createHasMembers =
  (source: ApproverSource) =>
  async (groupKey: string): Promise<boolean> => {
    const { principals } = await source
      .listPrincipals({ groupKey, pageSize: 1, pageToken: '' })
      .catch(throwFromRpc('identity'))
    return principals.length > 0
  }

/** The ids of all active administrators. Throws while identity is away. */
export const createAdministrators = (source: ApproverSource) => async (): Promise<string[]> => {
  const ids: string[] = []
  let pageToken = ''
  do {
    const page = await source
      .listPrincipals({ role: 'admin', pageSize: PAGE, pageToken })
      .catch(throwFromRpc('identity'))
    for (const { user } of page.principals.map(principalOf)) if (user.status === 'ACTIVE') ids.push(user.id)
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  return ids
}
