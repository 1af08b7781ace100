import {
  type Act,
  type Books,
  cover,
  type GateBook,
  type NodeBook,
  type OperationBook,
  type PersonBook,
  type Span,
  surely,
  type Vote,
} from './books.ts'

/** An effect on a host, from the host's own ledger. */
export type Effect = {
  at: string
  hostname: string
  operation_id: string | null
  node_id: string | null
  attempt: string | null
  key: string | null
  effect: string
  detail: string
}
/** A start as the platform states it; the ledger shows its effect. */
export type Start = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  attempt: number
  started_at: number
  /** How often it was given a fence: if more than once, it may have begun again at any time until its effect. */
  grants: number
}
export type Breach = { operation_id: string; what: string; people: string[] }

/** How old a proof of people may be at a start, and how far the clocks of processes on one machine may differ. */
const PEOPLE_MS = 5000
const CLOCK_MS = 250
/** How long a call of a killed worker may continue. */
const UNDER_WAY_MS = 20_000
const NEVER: Act = { from: 0, to: 0, outcome: 'refused' }

/** Judges every start and every effect of a run by the books. */
export const judge = (books: Books, starts: readonly Start[], ledger: readonly Effect[]): Breach[] => {
  const breaches: Breach[] = []
  const effects = new Map<string, Effect[]>()
  for (const effect of ledger) {
    const key = `${effect.operation_id}:${effect.node_id}:${effect.attempt}`
    effects.set(key, [...(effects.get(key) ?? []), effect])
  }
  const known = new Set<string>()
  for (const start of starts) {
    const { operation_id, node_id, role, attempt } = start
    const key = `${operation_id}:${node_id}:${role === 'run' ? '' : 'c'}${attempt}`
    known.add(key)
    const operation = books.operations.get(operation_id)
    if (!operation) continue
    const done = effects.get(key) ?? []
    const people = new Set<string>()
    const when = `${node_id} (${role} ${attempt}) at ${clock(start.started_at)}`
    for (const what of faultsOf(books, operation, start, done, people))
      breaches.push({ operation_id, what: `${when}: ${what}`, people: [...people] })
  }
  for (const [key, [effect]] of effects)
    if (effect?.operation_id && !known.has(key))
      breaches.push({ operation_id: effect.operation_id, what: `${key} had an effect and never started`, people: [] })
  for (const operation of books.operations.values())
    for (const what of [...stirred(books, operation, ledger), ...stale(books, operation), ...voted(books, operation)])
      breaches.push({ operation_id: operation.operation_id, what, people: [] })
  return breaches
}

const faultsOf = (
  books: Books,
  operation: OperationBook,
  { node_id, role, started_at, grants }: Start,
  effects: readonly Effect[],
  people: Set<string>,
): string[] => {
  const first = effects[0]
  const ended = grants === 1 ? started_at : first ? Date.parse(first.at) : Number.POSITIVE_INFINITY
  const begun: Span = { from: started_at, to: ended }
  const faults: string[] = []
  if (effects.length > 1) faults.push(`had ${effects.length} effects`)
  const undoing = operation.cancels.filter(({ mode }) => mode === 'compensate')
  const final = operation.cancels.filter(({ mode }) => mode !== 'compensate')
  const stopped = role === 'run' ? surely(operation.cancels, []) : surely(final, undoing)
  if (cover(stopped, begun)) faults.push('began after an acknowledged cancel')
  if (role === 'undo') return faults
  if (cover(surely(operation.pauses, operation.resumes), begun)) faults.push('began after an acknowledged pause')
  const node = operation.nodes.get(node_id)
  if (!node) return [...faults, 'began, and no plan and no patch holds it']
  for (const { put, withdrawn } of books.freezes.filter(({ host }) => host === node.host))
    if (cover(surely([put], withdrawn), begun)) faults.push(`began on ${node.host} under a freeze of ${clock(put.to)}`)
  if (first && first.hostname !== node.host) faults.push(`acted on ${first.hostname}, not on ${node.host}`)
  const does = first?.detail
  if (does !== undefined) faults.push(...valueFaults(books, node, does, begun))
  for (const gate of operation.gates.values())
    if (gate.cone.has(node_id)) faults.push(...gateFaults(books, operation, gate, node_id, does, begun, people))
  faults.push(...patchFaults(books, operation, node, begun, people))
  return faults
}

/** Faults of values: a person must have stated the value by then, or the catalog must still have held it. */
const valueFaults = (
  books: Books,
  { host, stated }: { host: string; stated: { does: string; act: Act }[] | null },
  does: string,
  begun: Span,
): string[] => {
  if (stated) {
    const said = stated.some((one) => one.does === does && one.act.outcome !== 'refused' && one.act.from <= begun.to)
    return said ? [] : [`did ${does}, which nobody had stated`]
  }
  const values = books.values.get(host) ?? []
  const at = values.findIndex(({ value }) => value === does)
  if (at < 0) return [`did ${does}, which the catalog never said of ${host}`]
  const { act } = values[at] ?? { act: NEVER }
  const later = values.filter((other, i) => i !== at && other.act.from >= act.to)
  const news = later.map((other) => `${other.value} since ${clock(other.act.to)}`).join(', ')
  const old = surely(
    later.map((other) => other.act),
    [],
  )
  return cover(old, begun) ? [`did ${does}, when the catalog said otherwise of ${host}: ${news}`] : []
}

/**
 * Enough people must have approved this node's action. If the gate guards the node itself, each needs a recently
 * proved right to vote, and must not have been overruled since. A node further behind was only read.
 */
const gateFaults = (
  books: Books,
  operation: OperationBook,
  gate: GateBook,
  node_id: string,
  does: string | undefined,
  begun: Span,
  people: Set<string>,
): string[] => {
  const guarded = gate.guards.includes(node_id)
  const own = operation.patches.filter((patch) => patch.node_id === node_id)
  const why: string[] = []
  const voters = new Set<string>()
  for (const vote of [...gate.votes, ...own.flatMap(({ votes }) => votes)]) {
    const no =
      unread(operation, vote, node_id, does, begun) ??
      (guarded
        ? (overruled(vote, gate.votes, begun) ??
          withoutRight(books, vote.voter, begun, gate.group) ??
          tainted(books, operation, vote.voter, begun, gate.group))
        : undefined)
    if (no === undefined) voters.add(vote.voter)
    else why.push(`${vote.voter} ${no}`)
    people.add(vote.voter)
  }
  if (voters.size >= gate.quorum) return []
  const counted = `${voters.size} of ${gate.quorum} approvals (${why.join(', ') || 'nobody voted'})`
  return [`began${does === undefined ? '' : ` doing ${does}`} behind ${gate.gate_id} with ${counted}`]
}

/** Why a vote is no approval of this node's action; `undefined` if it may be one. */
const unread = (
  { involved }: OperationBook,
  vote: Vote,
  node_id: string,
  does: string | undefined,
  begun: Span,
): string | undefined => {
  if (vote.decision === 'reject') return 'rejected'
  if (vote.outcome === 'refused') return 'was refused'
  if (vote.from > begun.to) return 'came later'
  if (involved.includes(vote.voter)) return 'takes part'
  const read = vote.paper.get(node_id)
  return does === undefined || read === does ? undefined : `had read ${read ?? 'no word of it'}`
}

/** A rejection by anyone voids the approvals before it; by the voter it is a withdrawal. */
const overruled = (vote: Vote, others: readonly Vote[], begun: Span): string | undefined => {
  const rejected = others.filter(({ decision, from }) => decision === 'reject' && from >= vote.to)
  return cover(surely(rejected, []), begun) ? 'was overruled or withdrawn' : undefined
}

const withoutRight = (books: Books, name: string, begun: Span, group: string | null): string | undefined => {
  const person = books.people.get(name)
  if (!person) return 'is unknown'
  if (group !== null && person.group !== group) return `is not of ${group}`
  return cover(lostBy(person, group), { from: begun.from - PEOPLE_MS - CLOCK_MS, to: begun.to })
    ? 'had lost the right'
    : undefined
}

const lostBy = ({ parts }: PersonBook, group: string | null): Span[] =>
  Object.entries(parts)
    .filter(([part]) => part !== 'group' || group !== null)
    .flatMap(([, { lost, given }]) => surely(lost, given))

/** The right to vote rests on a grant, made after the plan, by someone who takes part in the operation. */
const tainted = (
  books: Books,
  { involved, planned }: OperationBook,
  name: string,
  begun: Span,
  group: string | null,
): string | undefined => {
  const proved = begun.from - PEOPLE_MS - CLOCK_MS
  const rests = Object.entries(books.people.get(name)?.parts ?? {}).some(([part, { lost, given }]) => {
    if (part === 'account' || (part === 'group' && group === null)) return false
    const acts = given.filter(({ outcome, from }) => outcome !== 'refused' && from <= begun.to)
    const gift = acts.at(-1)
    if (gift?.outcome !== 'done' || gift.from < planned.to || gift.to > proved) return false
    if (!involved.includes(gift.by ?? '')) return false
    // All earlier grants are surely gone.
    const earlier = acts.filter((act) => act !== gift)
    return lost.some(
      (act) => act.outcome === 'done' && act.to <= gift.from && earlier.every(({ to }) => to <= act.from),
    )
  })
  return rests ? 'had the right of a participant' : undefined
}

/** It was started although the catalog had changed a target's value since its plan was made. */
const stale = (books: Books, { nodes, planned, started }: OperationBook): string[] =>
  [...nodes.values()].flatMap(({ node_id, host, stated }) =>
    (stated ? [] : (books.values.get(host) ?? []))
      .filter(({ act }) => act.outcome === 'done' && act.from >= planned.to && act.to <= started.from)
      .map(({ value }) => `was started although the catalog said ${value} of ${host} (${node_id}) since its plan`),
  )

/** Votes that should have been refused, and gates that opened on votes which no longer counted. */
const voted = (books: Books, operation: OperationBook): string[] =>
  [...operation.gates.values()].flatMap((gate) =>
    gate.votes
      .filter(({ decision, outcome }) => decision === 'approve' && outcome === 'done')
      .flatMap((vote) => {
        const faults = [
          ...outdated(operation, vote),
          authored(operation, vote),
          tainted(books, operation, vote.voter, vote, gate.group),
          vote.opened ? unopened(books, gate, vote) : undefined,
        ]
        return faults.flatMap((what) =>
          what === undefined
            ? []
            : [`${gate.gate_id} took the vote of ${vote.voter} at ${clock(vote.to)}, who ${what}`],
        )
      }),
  )

const outdated = ({ nodes }: OperationBook, { paper, from }: Vote): string[] =>
  [...paper].flatMap(([node_id, does]) => {
    const stated = nodes.get(node_id)?.stated ?? []
    const read = stated.find((one) => one.does === does)
    const news = stated.find(({ act }) => read && act.outcome === 'done' && act.from >= read.act.to && act.to <= from)
    return news ? [`had read ${does} when ${news.does} was stated`] : []
  })

/** Whoever has stated an action takes part from then on. */
const authored = ({ nodes }: OperationBook, { voter, from }: Vote): string | undefined =>
  [...nodes.values()]
    .flatMap(({ stated }) => stated ?? [])
    .filter(({ by, act }) => by === voter && act.outcome === 'done' && act.to <= from)
    .map(({ does }) => `had stated ${does}`)[0]

/** A vote that completes a quorum has the others proved at that moment: a right lost before no longer counts. */
const unopened = (books: Books, gate: GateBook, vote: Vote): string | undefined => {
  const left = gate.votes.filter(({ voter, decision, outcome, from }) => {
    if (decision !== 'approve' || outcome === 'refused' || from > vote.to || voter === vote.voter) return false
    const person = books.people.get(voter)
    return person !== undefined && !cover(lostBy(person, gate.group), vote)
  })
  const voters = new Set([vote.voter, ...left.map(({ voter }) => voter)])
  return voters.size < gate.quorum
    ? `opened it with ${voters.size} of ${gate.quorum} votes of people who still had the right`
    : undefined
}

/**
 * Others than the proposer must have approved the nodes that a patch adds, as required by the gates that guard the
 * host. Each must have had the right when voting, and when the node began.
 */
const patchFaults = (
  books: Books,
  { patches, gates, nodes }: OperationBook,
  { node_id, host }: NodeBook,
  begun: Span,
  people: Set<string>,
): string[] => {
  const patch = patches.find((one) => one.node_id === node_id)
  if (!patch) return []
  const touched = [...gates.values()].filter(({ guards }) => guards.some((id) => nodes.get(id)?.host === host))
  const asked = [{ quorum: 1, group: null }, ...touched.map(({ quorum, group }) => ({ quorum, group }))]
  return asked.flatMap(({ quorum, group }) => {
    const voters = new Set<string>()
    for (const { voter, decision, outcome, from, to, paper } of patch.votes) {
      people.add(voter)
      if (decision !== 'approve' || outcome === 'refused' || from > begun.to || voter === patch.proposer) continue
      const lost = withoutRight(books, voter, { from, to }, group) ?? withoutRight(books, voter, begun, group)
      if (paper.get(node_id) === patch.does && !lost) voters.add(voter)
    }
    const by = group === null ? '' : ` of ${group}`
    return voters.size >= quorum ? [] : [`began by a patch with ${voters.size} of ${quorum} approvals${by}`]
  })
}

/** Effects while it was seen paused, by the ledger alone. */
const stirred = (books: Books, operation: OperationBook, ledger: readonly Effect[]): string[] => {
  const own = ledger.filter(({ operation_id }) => operation_id === operation.operation_id)
  const moves: Act[] = [...operation.resumes, ...operation.cancels.filter(({ mode }) => mode === 'compensate')]
  return own.flatMap(({ at, node_id, detail }) => {
    const [time, what] = [Date.parse(at), `${node_id} did ${detail} at ${clock(Date.parse(at))}`]
    const { seen_ended } = operation
    if (books.kills.some((kill) => kill < time && kill > time - UNDER_WAY_MS)) return []
    if (seen_ended !== null && time > seen_ended + CLOCK_MS && !forced(operation)) return [`${what}, after its end`]
    const still = operation.seen_paused.some(
      (seen) =>
        time > seen.to + CLOCK_MS &&
        !moves.some(({ from, to, outcome }) => outcome !== 'refused' && to > seen.from - CLOCK_MS && from < time),
    )
    return still ? [`${what}, while it was seen to be paused`] : []
  })
}

/** A forced cancel leaves open calls behind. */
const forced = ({ cancels }: OperationBook) =>
  cancels.some(({ mode, outcome }) => mode === 'force' && outcome !== 'refused')

export const clock = (at: number): string => (Number.isFinite(at) ? new Date(at).toISOString().slice(11, 23) : '?')
