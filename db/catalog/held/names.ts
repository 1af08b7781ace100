import type { ResourceRow } from '../rows.ts'
import { type Journal, Unheld } from './journal.ts'
import type { NewName } from './missing.ts'

export type Twin = { rid: string; what: 'resource_id' | 'name' | 'identity' }
export type WantedName = Omit<NewName, 'type_id'> & { type_id: number | null }

export const nameKey = (type_id: number, parent_rid: string | null, name: string) => `${type_id} ${parent_rid} ${name}`
export const identityKey = (type_id: number, hash: Buffer) => `${type_id} ${hash.toString('hex')}`

/** Which open resource holds a name or a natural identity, as far as looked up so far. */
export const createNames = (journal: Journal, fresh: ReadonlySet<string>) => {
  const names = new Map<string, string | undefined>()
  const identities = new Map<string, string | undefined>()
  /** The natural identities of new resources, and of those whose identity changed. */
  const identity = new Map<string, Buffer | null>()

  const leaveIdentity = (rid: string): void => {
    for (const [key, known] of identities) if (known === rid) journal.put(identities, key, undefined)
  }
  const takeIdentity = (type_id: number, rid: string, hash: Buffer | null): void => {
    journal.put(identity, rid, hash)
    if (hash) journal.put(identities, identityKey(type_id, hash), rid)
  }
  return {
    names,
    identities,
    identity,
    twinOf: ({ type_id, identity_hash, ...wanted }: WantedName): Twin | undefined => {
      if (type_id === null) return undefined
      const { parent_rid, name } = wanted
      const [named, identical] = [
        nameKey(type_id, parent_rid, name),
        identity_hash && identityKey(type_id, identity_hash),
      ]
      const in_new = parent_rid !== null && fresh.has(parent_rid)
      if ((!in_new && !names.has(named)) || (identical && !identities.has(identical)))
        throw new Unheld({ twins: [{ type_id, identity_hash, ...wanted }] })
      const rid = identical ? identities.get(identical) : undefined
      if (rid !== undefined) return { rid, what: 'identity' }
      const namesake = names.get(named)
      return namesake === undefined ? undefined : { rid: namesake, what: 'name' }
    },
    take: ({ rid, type_id, parent_rid, name }: ResourceRow, hash: Buffer | null): void => {
      journal.put(names, nameKey(type_id, parent_rid, name), rid)
      takeIdentity(type_id, rid, hash)
    },
    move: ({ rid, type_id }: ResourceRow, hash: Buffer | null): void => {
      leaveIdentity(rid)
      takeIdentity(type_id, rid, hash)
    },
    /** The resource now has another parent. */
    place: ({ rid, type_id, parent_rid, name }: ResourceRow, next: string | null): void => {
      const [old, wanted] = [nameKey(type_id, parent_rid, name), nameKey(type_id, next, name)]
      if (names.get(old) === rid) journal.put(names, old, undefined)
      if (names.get(wanted) === undefined) journal.put(names, wanted, rid)
    },
    leave: ({ rid, type_id, parent_rid, name }: ResourceRow): void => {
      const key = nameKey(type_id, parent_rid, name)
      if (names.get(key) === rid) journal.put(names, key, undefined)
      leaveIdentity(rid)
    },
  }
}
