import { inArray, sql } from 'drizzle-orm'
import type { Tx } from '../../db/client.ts'
import { lockOperation, tellEngine } from '../../db/operations/commands/rows.ts'
import { bumpRevision, stateFacts } from '../../db/operations/facts/state.ts'
import { SYSTEM, type TimelineEvent } from '../../db/operations/facts/timeline.ts'
import { afresh } from '../../db/operations/gates/ask.ts'
import { carryVotes, type GateRow, listGates, swapGate, voidVotes } from '../../db/operations/gates/rows.ts'
import { listDue, listVotedBy, markProved, readClock } from '../../db/operations/gates.standing.ts'
import { gates, operations } from '../../db/operations/tables/index.ts'
import { outcomeOfVotes } from '../../workflows/operation/rules.ts'
import type { Principal } from '../shared/auth/principals.ts'
import { digest } from '../shared/data/digest.ts'
import { unavailable } from '../shared/errors.ts'
import type { OperationsDeps } from './deps.ts'
import { type LostVote, lossOf, lossOfBypass, type Measure, wordsOf } from './gates.voters.ts'
import { loadPlaces } from './policies/visibility.ts'

/** What identity said of people a moment ago, by user id; undefined: there is no such user. */
export type People = ReadonlyMap<string, Principal | undefined>

/** Somebody voted of whom identity was not asked yet. */
class Unasked extends Error {
  readonly user_ids: readonly string[]
  constructor(user_ids: readonly string[]) {
    super('identity was not asked about these people')
    this.user_ids = user_ids
  }
}
const TRIES = 5

/**
 * Runs `work`, whose transaction may turn out to need people that identity was not asked about: it is undone, they are
 * asked about without a lock being held, and it runs again. Throws 503 while identity is away.
 */
export const withPeople = async <T>(deps: OperationsDeps, work: (people: People) => Promise<T>): Promise<T> => {
  const people = new Map<string, Principal | undefined>()
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      return await work(people)
    } catch (error) {
      if (!(error instanceof Unasked)) throw error
      for (const [user_id, person] of await askPeople(deps, error.user_ids)) people.set(user_id, person)
    }
  }
  throw unavailable('Votes come faster than their voters can be proved.')
}

const askPeople = ({ trust }: OperationsDeps, user_ids: readonly string[]) =>
  Promise.all(user_ids.map(async (user_id) => [user_id, await trust.principals.ask(user_id)] as const))

/**
 * Approvals among these that no longer count. Throws where identity was not asked about a voter: only withPeople runs
 * this.
 */
export const lostAmong = (
  approvals: readonly GateRow['gate']['votes'][number][],
  people: People,
  measure: Measure,
): LostVote[] => {
  requireAsked(
    approvals.map(({ user_id }) => user_id),
    people,
  )
  return approvals.flatMap((vote) => {
    const why = lossOf(people.get(vote.user_id), vote, measure)
    return why ? [{ user_id: vote.user_id, name: vote.actor.name, why }] : []
  })
}

const requireAsked = (user_ids: readonly string[], people: People): void => {
  const unasked = user_ids.filter((user_id) => !people.has(user_id))
  if (unasked.length > 0) throw new Unasked(unasked)
}

/** The approvals of the gate's round that count. */
export const approvalsOf = ({ gate }: Pick<GateRow, 'gate'>) =>
  gate.votes.filter(({ round, decision }) => round === gate.round && decision === 'approve')

/** What a lost vote leaves in timeline and evidence. */
export const voidedEvents = ({ gate }: Pick<GateRow, 'gate'>, lost: readonly LostVote[]): TimelineEvent[] =>
  lost.map(({ user_id, name, why }) => {
    const { gate_id, round } = gate
    const said = { gate_id, round, decision: 'void', voter: { id: user_id, name }, why }
    return {
      type: 'gate.vote_voided',
      actor: SYSTEM,
      reason: wordsOf([{ name, why }]),
      gate_id,
      data: { round, why, voter: { id: user_id, name } },
      evidence: {
        kind: 'vote',
        statement: `Gate ${gate_id}, round ${round}: ${wordsOf([{ name, why }])}`,
        subject: { type: 'gate', id: gate_id, round, decision: 'void', voter: user_id, why },
        subject_digest: digest(said),
      },
    }
  })

/**
 * Proves the people of these gates again (federation.md 6). Votes that no longer count are void; without its quorum a
 * gate asks again in a further round with the other votes, and the engine is told. Throws 503 while identity is away.
 */
export const proveGates = async (
  deps: OperationsDeps,
  operation_id: string,
  gate_ids: readonly string[],
): Promise<void> => {
  const asked_at = await readClock(deps.db)
  const changed = await withPeople(deps, (people) =>
    deps.db.transaction((tx) => prove(tx, { operation_id, gate_ids, asked_at, people })),
  )
  if (changed) deps.nats.wake('operations')
}

type Proving = { operation_id: string; gate_ids: readonly string[]; asked_at: string; people: People }

const prove = async (tx: Tx, { operation_id, gate_ids, asked_at, people }: Proving): Promise<boolean> => {
  // Voters are known before the lock is taken; whoever votes meanwhile is asked about in the next try.
  const of = inArray(gates.gate_id, [...gate_ids])
  const before = await listGates(tx, operation_id, of, gate_ids.length)
  requireAsked(before.flatMap(votersOf), people)
  const operation = await lockOperation(tx, operation_id)
  if (!operation || operation.control === 'cancel') return false
  const rows = await listGates(tx, operation_id, of, gate_ids.length)
  const places = await loadPlaces(tx, operation.resource_ids)
  const settled: Settled[] = []
  for (const row of rows) settled.push(await settle(tx, row, people, { row, places, now: operation.now }))
  await markProved(tx, operation_id, gate_ids, asked_at)
  const events = settled.flatMap((one) => one.events)
  if (events.length === 0) return false
  await bumpRevision(tx, operation_id)
  const opened = settled.filter((one) => one.opened).length
  await stateFacts(tx, operation_id, { events, set: { open_gates: sql`${operations.open_gates} + ${opened}` } })
  return true
}

const PEOPLE = new Set(['waiting', 'approved'])
const isBypassed = ({ gate }: GateRow) => gate.status === 'bypassed' && gate.decided_by?.kind === 'user'

const votersOf = (row: GateRow): string[] => {
  if (PEOPLE.has(row.gate.status)) return approvalsOf(row).map(({ user_id }) => user_id)
  return isBypassed(row) && row.gate.decided_by ? [row.gate.decided_by.id] : []
}

type Settled = { events: TimelineEvent[]; opened: boolean }
const UNMOVED: Settled = { events: [], opened: false }

const settle = async (tx: Tx, row: GateRow, people: People, measure: Measure): Promise<Settled> => {
  const { gate } = row
  const lost = isBypassed(row) ? lostBypass(row, people, measure) : lostVotes(row, people, measure)
  if (lost.length === 0) return UNMOVED
  const gone = lost.map(({ user_id }) => user_id)
  await voidVotes(tx, gate, gone)
  const voided = voidedEvents(row, lost)
  const left = gate.votes.filter(({ round, user_id }) => round === gate.round && !gone.includes(user_id))
  const votes = left.map(({ user_id, decision, group }) => ({ user_id, decision, group_key: group }))
  const holds = !isBypassed(row) && outcomeOfVotes({ policy: gate.policy, votes }) === 'approved'
  if (gate.status === 'waiting' || holds) return { events: voided, opened: false }
  return { events: [...voided, await reopen(tx, row, lost, left)], opened: true }
}

const lostVotes = (row: GateRow, people: People, measure: Measure): LostVote[] =>
  PEOPLE.has(row.gate.status) ? lostAmong(approvalsOf(row), people, measure) : []

const lostBypass = ({ gate }: GateRow, people: People, measure: Measure): LostVote[] => {
  const { id, name } = gate.decided_by ?? { id: '', name: '' }
  requireAsked([id], people)
  const why = lossOfBypass(people.get(id), measure)
  return why ? [{ user_id: id, name, why }] : []
}

/** A passed gate, used or not, asks again in the next round; the votes that still count go on in it. */
const reopen = async (
  tx: Tx,
  { gate }: GateRow,
  lost: readonly LostVote[],
  left: readonly GateRow['gate']['votes'][number][],
): Promise<TimelineEvent> => {
  const { operation_id, gate_id } = gate
  const round = gate.round + 1
  const from = { status: gate.status, round: gate.round }
  const set = { status: 'waiting', round, ...afresh(gate.policy.deadline_s) }
  // The control row is held: whoever decides or claims waits for it.
  if (!(await swapGate(tx, { operation_id, gate_id, from, set }, { started: true })))
    throw new Error(`gate ${gate_id} moved under the lock`)
  await carryVotes(tx, operation_id, gate_id, gate.round)
  const reason = wordsOf(lost)
  const payload = { gate_id, round, status: 'waiting', digest: gate.digest }
  await tellEngine(tx, operation_id, 'gate_decided', payload, { reason })
  const whys = [...new Set(lost.map(({ why }) => why))]
  return {
    type: 'gate.reopened',
    actor: SYSTEM,
    reason,
    gate_id,
    data: {
      round,
      digest: gate.digest,
      why: whys[0],
      voters: lost.map(({ user_id, name, why }) => ({ id: user_id, name, why })),
    },
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

/** Those of these gates whose voters were not proved a moment ago are proved; those who ask together are answered together. */
export const createStanding = (deps: OperationsDeps) => {
  const running = new Map<string, Promise<void>>()
  const once = (key: string, work: () => Promise<void>): Promise<void> => {
    const known = running.get(key)
    if (known) return known
    const started = work().finally(() => running.delete(key))
    running.set(key, started)
    return started
  }
  return {
    /** Before the claim of a node behind these gates. */
    prove: async (operation_id: string, gate_ids: readonly string[]): Promise<void> => {
      const due = await listDue(deps.db, operation_id, gate_ids, deps.config.OPERATIONS__GATES__STANDING_S)
      if (due.length > 0) await once(`${operation_id} ${due.join(' ')}`, () => proveGates(deps, operation_id, due))
    },
    /** The rights of these people have changed: votes that they gave and nobody has used yet are proved now. */
    changed: async (user_ids: readonly string[] | 'all'): Promise<void> => {
      for (const { operation_id, gate_ids } of await listVotedBy(deps.db, user_ids))
        await proveGates(deps, operation_id, gate_ids)
    },
  }
}
export type Standing = ReturnType<typeof createStanding>
