import type { RecordResult } from './events.ts'
import { note } from './nodes.ts'
import type { State } from './types.ts'

/**
 * Whether the operation has its leases (operations.md 3.5). The rows decide: a claim without leases is refused. This is
 * only the last known state, so that no dispatch is in vain and leases are requested when a node could start.
 */
export const hasLeases = (s: State, wanted: () => boolean): boolean => {
  if (s.leases === 'held' || s.leases === 'none') return true
  if (s.leases === 'released' && wanted()) {
    s.leases = 'taking'
    note(s, { t: 'leases', to: 'take' })
  }
  return false
}

/** Gives the leases back while every node is blocked, and a waiting gate is set to release them. */
export const giveBack = (s: State, rests: () => boolean) => {
  if (s.leases !== 'held' || s.control !== 'run' || s.in_flight > 0) return
  if (!s.gates.some(({ status, release }) => release && status === 'waiting') || !rests()) return
  s.leases = 'giving'
  note(s, { t: 'leases', to: 'release' })
}

/** Takes the rows' answer; an older worker does not know leases and sends none. */
export const leasesRecorded = (s: State, { leases }: RecordResult) => {
  const asked = s.leases === 'giving' || s.leases === 'taking'
  if (!asked || s.changes.some(({ t }) => t === 'leases')) return
  s.leases = leases?.state ?? 'none'
  s.lease_blockers = leases?.blocked_on ?? []
}

export const leasesGranted = (s: State) => {
  s.leases = 'held'
  s.lease_blockers = []
}

/** A claim found the leases gone, or a person gave them back while the operation waited for them: request them anew. */
export const leasesLost = (s: State) => {
  if (s.leases === 'held' || s.leases === 'none' || s.leases === 'waiting') s.leases = 'released'
}
