/**
 * The books of the model: what was asked and answered, and when. Plain data, written from answers alone; the judge
 * reads nothing else about people's actions.
 */
export type Act = {
  /** When it was first sent and when it was answered, in milliseconds since 1970. It took effect in between. */
  from: number
  to: number
  /** Unknown: no answer came, so it took effect at any time since, or never. */
  outcome: 'done' | 'refused' | 'unknown'
}
export type Span = { from: number; to: number }

/** A vote and the paper that its voter had read: each released node with its action and place. */
export type Vote = Act & {
  voter: string
  decision: 'approve' | 'reject'
  paper: Map<string, string>
  /** The answer said that this vote opened the gate. */
  opened?: boolean
}

export type GateBook = {
  gate_id: string
  quorum: number
  /** The group that each vote must come from; null: anyone who may decide. */
  group: string | null
  /** Nodes that must not start before. */
  guards: string[]
  /** These and all nodes behind them: what its voters read. */
  cone: Set<string>
  votes: Vote[]
}

export type PatchBook = {
  patch_id: string
  proposer: string
  /** The node that it adds, and that node's action. */
  node_id: string
  does: string
  proposed: Act
  votes: Vote[]
}

export type NodeBook = {
  node_id: string
  host: string
  /** The actions that people stated for it, the plan first, then by whom; null: the catalog's value for its host. */
  stated: { does: string; act: Act; by?: string }[] | null
}

export type OperationBook = {
  operation_id: string
  /** Who stated the intent, and who started it: neither can approve it. */
  involved: string[]
  /** When the plan was made, and when it was started. */
  planned: Act
  started: Act
  nodes: Map<string, NodeBook>
  gates: Map<string, GateBook>
  patches: PatchBook[]
  pauses: Act[]
  resumes: Act[]
  cancels: (Act & { mode: string })[]
  /** When a reader saw it paused, with nothing left in flight. */
  seen_paused: Span[]
  /** The status that a reader saw last. */
  status: string
  seen_ended: number | null
  /** What was done to it, in words for people: printed with a breach. */
  told: string[]
}

export type PersonBook = {
  name: string
  /** The parts of a right to vote; each is lost and given back separately, and by whom is recorded. */
  parts: Record<Part, { lost: Act[]; given: (Act & { by?: string })[] }>
  /** The only group that the person is in, or was in. */
  group: string
}
export const PARTS = ['account', 'role', 'group'] as const
export type Part = (typeof PARTS)[number]

export type Books = {
  people: Map<string, PersonBook>
  operations: Map<string, OperationBook>
  /** The values of each host that the catalog was sent, in the order of the requests. */
  values: Map<string, { value: string; act: Act }[]>
  freezes: { id: string; host: string; put: Act; withdrawn: Act[] }[]
  /** When a worker was killed: calls that it had sent may arrive afterward. */
  kills: number[]
}

/**
 * When something was surely on: from the answer of each act that turned it on to the first request of any act that
 * might have turned it off since. Acts that overlap yield no such time.
 */
export const surely = (on: readonly Act[], off: readonly Act[]): Span[] =>
  on
    .filter(({ outcome }) => outcome === 'done')
    .map((act) => ({
      from: act.to,
      to: Math.min(
        Number.POSITIVE_INFINITY,
        ...off.filter(({ outcome, to }) => outcome !== 'refused' && to > act.from).map(({ from }) => from),
      ),
    }))
    .filter(({ from, to }) => to > from)

/** Whether these spans together cover every moment of the given one. */
export const cover = (spans: readonly Span[], { from, to }: Span): boolean => {
  let reached = from
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (span.from > reached) return false
    if (span.to > reached) reached = span.to
    if (reached > to) return true
  }
  return false
}
