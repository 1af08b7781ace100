import type { ResourceRow } from '../rows.ts'
import { type Journal, Unheld } from './journal.ts'

export type Twin = { rid: string; what: 'resource_id' | 'name' | 'identity' }
export type WantedName = {
  type_id: number | null
  parent_rid: string | null
  name: string
  identity_hash: Buffer | null
}

export const nameKey = (type_id: number, parent_rid: string | null, name: string) => `${type_id} ${parent_rid} ${name}`
export const identityKey = (type_id: number, hash: Buffer) => `${type_id} ${hash.toString('hex')}`

/** Which open resource holds a name or a natural identity, as far as it was asked before. */
export const createNames = (journal: Journal, fresh: ReadonlySet<string>) => {
  const names = new Map<string, string | undefined>()
  const identities = new Map<string, string | undefined>()
  /** The natural identities of new resources, and of those whose identity moved. */
  const identity = new Map<string, Buffer | null>()

  const holder = (map: Map<string, string | undefined>, key: string, is_known: boolean): string | undefined => {
    if (!is_known && !map.has(key)) throw new Unheld()
    return map.get(key)
  }
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
    twinOf: ({ type_id, parent_rid, name, identity_hash }: WantedName): Twin | undefined => {
      if (type_id === null) return undefined
      const identical = identity_hash ? holder(identities, identityKey(type_id, identity_hash), false) : undefined
      if (identical !== undefined) return { rid: identical, what: 'identity' }
      const in_new = parent_rid !== null && fresh.has(parent_rid)
      const namesake = holder(names, nameKey(type_id, parent_rid, name), in_new)
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
    leave: ({ rid, type_id, parent_rid, name }: ResourceRow): void => {
      const key = nameKey(type_id, parent_rid, name)
      if (names.get(key) === rid) journal.put(names, key, undefined)
      leaveIdentity(rid)
    },
  }
}
