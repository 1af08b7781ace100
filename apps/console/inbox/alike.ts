import { digestOf } from '../../shared/contracts/client/digest.ts'
import type { Gate, InboxRow } from '../api/types.ts'
import { actionOf, mayPress } from '../command/allowed.tsx'
import { stepOf } from '../votes/releases.ts'

export type Together = 'approve' | 'reject'
/** How many gates may be decided together, and how many votes are sent at once. */
export const MOST = 20
const AT_ONCE = 4

export const keyOf = (row: Pick<InboxRow, 'operation_id' | 'gate_id' | 'round'>): string =>
  `${row.operation_id}/${row.gate_id}/${row.round}`

/** The set with this key, or without it if it held it. */
export const flipped = (keys: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  keys.has(key) ? new Set([...keys].filter((other) => other !== key)) : new Set([...keys, key])

/** Whether this person may decide the gate together with others. */
export const mayTogether = (row: InboxRow, verdict: Together): boolean =>
  row.alone[verdict] === null && mayPress(actionOf(row, verdict))

/** A gate that was read again for the dialog; `out`: why it is left out. */
export type Candidate = { row: InboxRow; gate: Gate; out: 'moved' | 'differs' | null }

/** What became of a gate since its row was read, and whether its digest is that of the subject that came with it. */
export const candidateOf = async (row: InboxRow, gate: Gate): Promise<Candidate> => {
  const moved = gate.status !== 'waiting' || gate.round !== row.round || gate.digest !== row.digest
  const differs = (await digestOf(gate.subject)) !== gate.digest
  return { row, gate, out: differs ? 'differs' : moved ? 'moved' : null }
}

/** Gates with equal keys make the same change: the same fields to the same values by the same steps, on as many targets. */
export const changeKey = ({ subject }: Pick<Gate, 'subject'>): string => {
  if (subject === null) return ''
  const { changes, releases, releases_count, bound_outputs, intervention } = subject
  return JSON.stringify([
    changes.map(({ change, fields }) => JSON.stringify([change, fields])).sort(),
    releases.map((one) => JSON.stringify([stepOf(one), one.executor, one.on_failure])).sort(),
    releases_count ?? releases.length,
    bound_outputs,
    intervention ?? null,
  ])
}

export type Parted = { alike: Candidate[]; apart: Candidate[]; elsewhere: Candidate[]; out: Candidate[] }

/**
 * The largest group of equal changes in one environment; `apart`: other changes there; `elsewhere`: other
 * environments, which no batch mixes; `out`: those that moved since.
 */
export const partOf = (candidates: readonly Candidate[]): Parted => {
  const sound = candidates.filter(({ out }) => out === null)
  const groups = Map.groupBy(sound, ({ row, gate }) => JSON.stringify([row.environment, changeKey(gate)]))
  const alike = [...groups.values()].reduce<Candidate[]>((most, one) => (one.length > most.length ? one : most), [])
  const others = sound.filter((one) => !alike.includes(one))
  const isHere = ({ row }: Candidate) => row.environment === alike[0]?.row.environment
  return {
    alike,
    apart: others.filter(isHere),
    elsewhere: others.filter((one) => !isHere(one)),
    out: candidates.filter(({ out }) => out !== null),
  }
}

/** Sends four at a time. After an answer that stops, no other is sent. */
export const sendEach = async <Item>(
  items: readonly Item[],
  send: (item: Item) => Promise<'on' | 'stop'>,
): Promise<void> => {
  const left = items.values()
  const state = { stopped: false }
  const work = async () => {
    while (!state.stopped) {
      const { value, done } = left.next()
      if (done) return
      if ((await send(value)) === 'stop') state.stopped = true
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
