import { digestOf, patchSubject } from '../../../shared/contracts/client/digest.ts'
import type { WaitingPatch } from '../../../shared/contracts/operations/waiting.ts'
import type { Gate, InboxRow, Patch } from '../../api/types.ts'
import { actionOf, mayPress, type Why } from '../../command/allowed.tsx'
import { stepOf } from '../../votes/releases.ts'
import { tDecide } from '../../words/decide.ts'

export type Together = 'approve' | 'reject'
/** How many items may be decided together. */
export const MOST = 20

/** A vote that waits for this person, on a gate or on a patch. */
export type Ballot = {
  operation_id: string
  operation_title: string
  environment: string | null
  /** The question of a gate, or the reason of a patch. */
  title: string
  digest: string
  alone: InboxRow['alone']
  /** Why this person must not decide so; null if they may. */
  barred: Record<Together, Why | null>
} & ({ gate_id: string; round: number } | { patch_id: string })

export const ballotOf = (row: InboxRow): Ballot => ({
  ...{ operation_id: row.operation_id, operation_title: row.operation_title, environment: row.environment },
  ...{ title: row.question, digest: row.digest, alone: row.alone, gate_id: row.gate_id, round: row.round },
  barred: { approve: barredBy(row, 'approve'), reject: barredBy(row, 'reject') },
})
const barredBy = (row: InboxRow, verdict: Together): Why | null => {
  const action = actionOf(row, verdict)
  return mayPress(action) ? null : action?.reason ? action : tDecide.inbox.not_you
}

export const patchBallot = (patch: WaitingPatch): Ballot => {
  const barred = patch.mine ? null : tDecide.inbox.not_you
  return {
    ...{ operation_id: patch.operation_id, operation_title: patch.operation_title, environment: patch.environment },
    ...{ title: patch.reason, digest: patch.digest, alone: patch.alone, patch_id: patch.patch_id },
    barred: { approve: barred, reject: barred },
  }
}

export const keyOf = (
  ballot: Pick<Ballot, 'operation_id'> & ({ gate_id: string; round: number } | { patch_id: string }),
) =>
  'gate_id' in ballot
    ? `${ballot.operation_id}/${ballot.gate_id}/${ballot.round}`
    : `${ballot.operation_id}/${ballot.patch_id}`

export type Noun = 'gate' | 'patch' | 'item'
export const nounOf = (ballots: readonly Ballot[]): Noun => {
  const gates = ballots.filter((ballot) => 'gate_id' in ballot).length
  return gates === ballots.length ? 'gate' : gates === 0 ? 'patch' : 'item'
}

/** The set with this key added, or removed if the set has it. */
export const flipped = (keys: ReadonlySet<string>, key: string): ReadonlySet<string> =>
  keys.has(key) ? new Set([...keys].filter((other) => other !== key)) : new Set([...keys, key])

/** Whether this person may decide it together with others. */
export const mayTogether = ({ alone, barred }: Ballot, verdict: Together): boolean =>
  alone[verdict] === null && barred[verdict] === null

/** A gate or patch, read again for the dialog; `out`: why it is left out. */
export type Candidate = { row: Ballot; read: Gate | Patch; out: 'moved' | 'differs' | null }
export const isPatch = (read: Gate | Patch): read is Patch => 'result_hash' in read

/** Checks whether the item has moved since its row was read, and whether its digest matches the subject beside it. */
export const candidateOf = async (row: Ballot, read: Gate | Patch): Promise<Candidate> => {
  const waits = isPatch(read)
    ? read.status === 'awaiting_approval'
    : read.status === 'waiting' && 'round' in row && read.round === row.round
  const differs = (await digestOf(isPatch(read) ? patchSubject(read) : read.subject)) !== read.digest
  return { row, read, out: differs ? 'differs' : waits && read.digest === row.digest ? null : 'moved' }
}

/**
 * Equal keys mean the same change. For gates: the same fields of resources of one type set to the same values by the
 * same steps, on as many targets. A step whose effect no field shows has the same inputs too, apart from its target's
 * id. For patches: the same changes to the graph.
 */
export const changeKey = (read: Gate | Patch): string => {
  if (isPatch(read)) return JSON.stringify(['patch', read.changes])
  const { subject } = read
  if (subject === null) return ''
  const { changes, releases, releases_count, releases_digest, bound_outputs, intervention } = subject
  const changed = new Set<string | null>(changes.map(({ resource_id }) => resource_id))
  const inputsOf = ({ target_id, inputs }: (typeof releases)[number]) =>
    changed.has(target_id)
      ? null
      : JSON.stringify(inputs, (_, value) => (value !== null && value === target_id ? '\0' : value))
  return JSON.stringify([
    changes.map(({ change, type_key, fields }) => JSON.stringify([change, type_key ?? null, fields])).sort(),
    releases.map((one) => JSON.stringify([stepOf(one), one.executor, one.on_failure, inputsOf(one)])).sort(),
    releases_count ?? releases.length,
    // The inputs of a subject that is cut are not all here.
    (releases.every((one) => changed.has(one.target_id)) ? null : releases_digest) ?? null,
    bound_outputs,
    intervention ?? null,
  ])
}

export type Parted = { alike: Candidate[]; apart: Candidate[]; elsewhere: Candidate[]; out: Candidate[] }

/**
 * The largest group of equal changes in one environment. `apart`: other changes there; `elsewhere`: other environments,
 * which no batch mixes; `out`: those that moved since.
 */
export const partOf = (candidates: readonly Candidate[]): Parted => {
  const sound = candidates.filter(({ out }) => out === null)
  const groups = Map.groupBy(sound, ({ row, read }) => JSON.stringify([row.environment, changeKey(read)]))
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
