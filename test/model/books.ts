/**
 * The books of the model: what was asked and answered, and when. Plain data, written from answers alone; the judge
 * reads nothing else of what people did.
 */
export type Act = {
  /** When it was first sent, and when it was answered: milliseconds since 1970. It took effect in between. */
  from: number
  to: number
  /** Unknown: no answer came, so that it took effect at any time since, or never. */
  outcome: 'done' | 'refused' | 'unknown'
}
export type Span = { from: number; to: number }

/** A vote and the paper that its voter had read: each released node with what it does, and where. */
export type Vote = Act & {
  voter: string
  decision: 'approve' | 'reject'
  paper: Map<string, string>
  /** Its answer said that the gate is open with it. */
  opened?: boolean
}

export type GateBook = {
  gate_id: string
  quorum: number
  /** The group of which each vote must come; null: anyone who may decide. */
  group: string | null
  /** Nodes that may not start before. */
  guards: string[]
  /** These, and all that comes behind them: what its voters read. */
  cone: Set<string>
  votes: Vote[]
}

export type PatchBook = {
  patch_id: string
  proposer: string
  /** The node that it adds, and what that is to do. */
  node_id: string
  does: string
  proposed: Act
  votes: Vote[]
}

export type NodeBook = {
  node_id: string
  host: string
  /** What people said that it shall do, the plan first; null: what the catalog says of its host. */
  stated: { does: string; act: Act }[] | null
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
  /** When a reader saw that it stood still: nothing was left in flight. */
  seen_paused: Span[]
  /** What a reader saw last. */
  status: string
  seen_ended: number | null
  /** What was done to it, for people: printed with a breach. */
  told: string[]
}

export type PersonBook = {
  name: string
  /** What makes up a right to vote, each lost and given back on its own, by whom. */
  parts: Record<Part, { lost: Act[]; given: (Act & { by?: string })[] }>
  /** The one group that the person is in, or was. */
  group: string
}
export const PARTS = ['account', 'role', 'group'] as const
export type Part = (typeof PARTS)[number]

export type Books = {
  people: Map<string, PersonBook>
  operations: Map<string, OperationBook>
  /** Values that the catalog was told of each host, in the order in which they were asked for. */
  values: Map<string, { value: string; act: Act }[]>
  freezes: { id: string; host: string; put: Act; withdrawn: Act[] }[]
  /** When a worker was killed: what it had sent may arrive afterwards. */
  kills: number[]
}

/**
 * When something surely was on: from the answer of each act that turned it on to the first asking of any act that might
 * have turned it off since. Acts that overlap leave no such time.
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

/** Whether these stretches together leave no moment of that one out. */
export const cover = (spans: readonly Span[], { from, to }: Span): boolean => {
  let reached = from
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    if (span.from > reached) return false
    if (span.to > reached) reached = span.to
    if (reached > to) return true
  }
  return false
}
