import { sql } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/client.ts'
import { lockOperation, tellEngine } from '../../../db/operations/commands/rows.ts'
import { bumpRevision, SYSTEM, stateFacts, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import { afresh } from '../../../db/operations/gates/ask.ts'
import {
  askedService,
  carryVotes,
  type GateRow,
  swapGate,
  type Vote,
  voidVotes,
} from '../../../db/operations/gates/rows.ts'
import {
  listVotedBy,
  markProved,
  markStanding,
  readStanding,
  type StandingRow,
} from '../../../db/operations/gates/standing.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { outcomeOfVotes } from '../../../workflows/operation/rules/gates.ts'
import type { Uses } from '../deps.ts'
import { hasScopes, loadPlaces } from '../policies/authority.ts'
import {
  approvalsOf,
  askPeople,
  bypassFooting,
  type LostVote,
  lossOf,
  lostAmong,
  type Measure,
  type People,
  requireAsked,
  voidedEvents,
  voteFacts,
  votesOf,
  withPeople,
  wordsOf,
} from '../policies/footing.ts'

/** A bypass stands while its person may still break the glass. */
const lostBypass = (row: GateRow, people: People, measure: Measure): LostVote[] => {
  const { gate } = row
  const { id = '', name = '' } = gate.decided_by ?? {}
  requireAsked([id], people)
  const why = lossOf(people.get(id), bypassFooting(row, measure))
  return why ? [{ user_id: id, name, why }] : []
}

/**
 * Proves the people of these gates, as they were just read, again. Votes that no longer count are void. A passed gate
 * that loses its quorum asks again in a further round with the other votes, and the engine is told. Throws 503 while
 * identity is away.
 */
const proveGates = async (
  { db, trust, nats, lookback_s }: ProveDeps,
  operation_id: string,
  before: readonly StandingRow[],
): Promise<void> => {
  const asked_at = before[0]?.now
  if (asked_at === undefined) return
  const gate_ids = before.map(({ gate }) => gate.gate_id)
  const known = await askPeople(trust, before.flatMap(votersOf))
  // Read before the lock is taken. The rows are marked only if they are still the same.
  const work = async (people: People) =>
    !(await standsAsRead(db, before, { people, asked_at, lookback_s })) &&
    db.transaction((tx) => prove(tx, { operation_id, gate_ids, asked_at, people, lookback_s }))
  const reopened = await withPeople(trust, work, known)
  if (reopened) nats.wake('operations')
}
type ProveDeps = Uses<'db' | 'lookback_s' | 'nats' | 'trust'>

/** The common case takes no lock that deciding people wait for: all these gates have passed, and no vote is lost. */
const standsAsRead = async (
  db: Db,
  rows: readonly GateRow[],
  { people, asked_at, lookback_s }: Pick<Proving, 'people' | 'asked_at' | 'lookback_s'>,
): Promise<boolean> => {
  if (!rows.every(({ gate }) => gate.status === 'approved' || gate.status === 'bypassed')) return false
  const scoped = [...people.values()].some((person) => person && hasScopes(person))
  const places = scoped ? await loadPlaces(db, rows[0]?.operation.resource_ids ?? []) : [{}]
  const measure = { places, now: asked_at, lookback_s }
  const stands = (row: GateRow) => lostOf(row, people, measure).length === 0 && holds(row, votesOf(row), [])
  return rows.every(stands) && (await markStanding(db, rows, asked_at))
}

type Proving = {
  operation_id: string
  gate_ids: readonly string[]
  asked_at: string
  people: People
  lookback_s: number
}

const prove = async (tx: Tx, { operation_id, gate_ids, asked_at, people, lookback_s }: Proving): Promise<boolean> => {
  const operation = await lockOperation(tx, operation_id)
  if (!operation || operation.control === 'cancel') return false
  const rows = await readStanding(tx, operation_id, gate_ids)
  const measure = { places: await loadPlaces(tx, operation.resource_ids), now: operation.now, lookback_s }
  const moved: Moved[] = []
  for (const row of rows) moved.push(await settle(tx, row, people, measure))
  await markProved(tx, operation_id, gate_ids, asked_at)
  const events = moved.flatMap((gate) => gate.events)
  if (events.length === 0) return false
  const opened = moved.filter((gate) => gate.opened).length
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, { events, set: { open_gates: sql`${operations.open_gates} + ${opened}` } })
  return opened > 0
}

const byVotes = ({ gate }: GateRow) => gate.status === 'waiting' || gate.status === 'approved'
const byBrokenGlass = ({ gate }: GateRow) => gate.status === 'bypassed' && gate.decided_by?.kind === 'user'

const votersOf = (row: GateRow): string[] => {
  if (byVotes(row)) return approvalsOf(row).map(({ user_id }) => user_id)
  return byBrokenGlass(row) && row.gate.decided_by ? [row.gate.decided_by.id] : []
}

const lostOf = (row: GateRow, people: People, measure: Measure): LostVote[] => {
  if (byVotes(row)) return lostAmong(row, approvalsOf(row), people, measure)
  return byBrokenGlass(row) ? lostBypass(row, people, measure) : []
}

type Moved = { events: TimelineEvent[]; opened: boolean }

const settle = async (tx: Tx, row: GateRow, people: People, measure: Measure): Promise<Moved> => {
  const { gate } = row
  const lost = lostOf(row, people, measure)
  const gone = new Set(lost.map(({ user_id }) => user_id))
  if (gone.size > 0) await voidVotes(tx, gate, [...gone])
  const left = votesOf(row).filter(({ user_id }) => !gone.has(user_id))
  const events = voidedEvents(row, lost)
  if (holds(row, left, lost)) return { events, opened: false }
  return { events: [...events, await reopen(tx, row, lost, left)], opened: true }
}

/** Whether the gate stays as it is: the approved subject has the votes that its policy requires. */
const holds = ({ gate }: GateRow, left: readonly Vote[], lost: readonly LostVote[]): boolean => {
  if (gate.status === 'bypassed') return lost.length === 0
  if (gate.status !== 'approved' || gate.kind === 'external_check' || gate.decided_by?.kind !== 'user') return true
  return outcomeOfVotes({ policy: gate.policy, votes: left.map(voteFacts) }) === 'approved'
}

/** A passed gate, used or not, asks again in the next round; the votes that still count carry over. */
const reopen = async (
  tx: Tx,
  { gate }: GateRow,
  lost: readonly LostVote[],
  left: readonly Vote[],
): Promise<TimelineEvent> => {
  const { operation_id, gate_id } = gate
  const round = gate.round + 1
  const from = { status: gate.status, round: gate.round }
  const set = { status: 'waiting', round, ...afresh(gate.policy.deadline_s) }
  // The control row is locked: anyone who decides or claims waits for it.
  if (!(await swapGate(tx, { operation_id, gate_id, from, set }, { used: true })))
    throw new Error(`gate ${gate_id} moved under the lock of its operation`)
  await carryVotes(tx, operation_id, gate_id, gate.round)
  const reason = lost.length > 0 ? wordsOf(lost) : 'The approvals it rested on no longer form a quorum.'
  const payload = { gate_id, round, status: 'waiting', digest: gate.digest }
  await tellEngine(tx, operation_id, 'gate_decided', payload, { reason })
  const voters = lost.map(({ user_id, name, why }) => ({ id: user_id, name, why }))
  return {
    type: 'gate.reopened',
    actor: SYSTEM,
    reason,
    gate_id,
    data: { round, digest: gate.digest, why: lost[0]?.why, voters, ...askedService(gate.policy) },
    evidence: {
      kind: 'gate_decision',
      statement: `Gate ${gate_id} asks again in round ${round}. ${reason}`,
      subject: {
        type: 'gate',
        id: gate_id,
        round,
        status: 'waiting',
        digest: gate.digest,
        kept: left.map(({ user_id }) => user_id),
      },
      subject_digest: gate.digest,
    },
  }
}

/** Before a claim, proves those gates whose voters were not proved recently. */
export const proveDue = async (
  deps: ProveDeps & Uses<'config'>,
  operation_id: string,
  gate_ids: readonly string[],
): Promise<void> => {
  const rows = await readStanding(deps.db, operation_id, gate_ids, deps.config.OPERATIONS__GATES__STANDING_S)
  await proveGates(
    deps,
    operation_id,
    rows.filter(({ due }) => due),
  )
}

/** The rights of these people have changed: their votes on gates not used yet are proved now. */
export const rightsChanged = async (deps: ProveDeps, user_ids: readonly string[] | 'all'): Promise<void> => {
  for (const { operation_id, gate_ids } of await listVotedBy(deps.db, user_ids))
    await proveGates(deps, operation_id, await readStanding(deps.db, operation_id, gate_ids))
}
