import type { View } from '../../../db/operations/notifications/waiting.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { callerBy } from '../../shared/auth/caller.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import { visibleSql } from '../policies/visibility.ts'
import { decidableBy, patchDecidableBy } from '../waiting/mine.ts'

export const ownerOf = (user_id: string): string => `user:${user_id}`

/** What this owner may see and decide, with the rights that `ask` tells; undefined: nobody who may be told. */
export const viewOf = async (
  owner: string,
  ask: (user_id: string) => Promise<Principal | undefined>,
): Promise<View | undefined> => {
  const principal = await ask(owner.slice('user:'.length))
  if (principal?.user.status !== 'ACTIVE' || principal.user.kind !== 'person') return undefined
  const caller = callerBy(principal)
  return { visible: visibleSql(caller, operations), gates: decidableBy(caller), patches: patchDecidableBy(caller) }
}
