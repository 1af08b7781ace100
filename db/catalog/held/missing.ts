import type { EdgeKey, LockMode } from '../rows.ts'

export type NewName = { type_id: number; parent_rid: string | null; name: string; identity_hash: Buffer | null }
export type Ended = { rid: string; reltype_id: number; end: 'src' | 'dst' }
/** An end whose edges are counted; unless `exact`, an earlier count serves while the limit is far. */
export type Counted = Ended & { exact?: true }

/** Data that a change needs and that is not held (many/load.ts). */
export type Missing = {
  ids?: string[]
  rids?: string[]
  edges?: EdgeKey[]
  around?: string[]
  counts?: Counted[]
  reach?: { rid: string; reltype_id: number }[]
  twins?: NewName[]
  /** Resources whose checks are needed. */
  checks?: string[]
  offers?: string[]
  numbers?: { rows: number; edges: number }
  locks?: ReadonlyMap<string, LockMode>
  type_locks?: ReadonlyMap<number, 'shared' | 'exclusive'>
}
