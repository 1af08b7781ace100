import type { RecordResult } from './events.ts'
import { note } from './nodes.ts'
import type { State } from './types.ts'

/**
 * The leases of an operation (operations.md 3.5). Rows decide: a claim without them is refused. Here stands only what was
 * last heard of them, so that no dispatch is in vain and they are requested when a node could start.
 */
export const hasLeases = (s: State, wanted: () => boolean): boolean => {
  if (s.leases === 'held' || s.leases === 'none') return true
  if (s.leases === 'released' && wanted()) {
    s.leases = 'taking'
    note(s, { t: 'leases', to: 'take' })
  }
  return false
}

/** Gives them back while only a gate that says so, and perhaps others, block every node. */
export const giveBack = (s: State, rests: () => boolean) => {
  if (s.leases !== 'held' || s.control !== 'run' || s.in_flight > 0) return
  if (!s.gates.some(({ status, release }) => release && status === 'waiting') || !rests()) return
  s.leases = 'giving'
  note(s, { t: 'leases', to: 'release' })
}

/** The rows have answered, or their keeper is one of before, who knows of no leases. */
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

/** A claim found them gone, or a person gave them back while they were waited for: they are asked for again. */
export const leasesLost = (s: State) => {
  if (s.leases === 'held' || s.leases === 'none' || s.leases === 'waiting') s.leases = 'released'
}
