/**
 * One word, one shape and one color token for each state that any object can have (console.md section 7). Console and
 * command line use the same word. A status is always shape and word; color comes third.
 */
export type Shape =
  | 'dashed'
  | 'dot'
  | 'play'
  | 'diamond'
  | 'clock'
  | 'retry'
  | 'bars'
  | 'check'
  | 'hexagon'
  | 'octagon'
  | 'question'
  | 'chevrons'
  | 'slash'
  | 'undo'
export type Tone = 'idle' | 'run' | 'wait' | 'hold' | 'ok' | 'bad' | 'odd'
export type StatusWord =
  | 'not_started'
  | 'queued'
  | 'running'
  | 'waiting_person'
  | 'waiting'
  | 'retrying'
  | 'paused'
  | 'pausing'
  | 'succeeded'
  | 'succeeded_with_exceptions'
  | 'failed'
  | 'unknown'
  | 'skipped'
  | 'cancelled'
  | 'cancelling'
  | 'undone'
export type StatusLook = {
  word: StatusWord
  shape: Shape
  tone: Tone /** Sort order: states that need a person come first. */
  rank: number
}

const look = (word: StatusWord, shape: Shape, tone: Tone, rank: number): StatusLook => ({ word, shape, tone, rank })

const FAILED = look('failed', 'octagon', 'bad', 0)
const UNKNOWN = look('unknown', 'question', 'odd', 1)
const WAITING_PERSON = look('waiting_person', 'diamond', 'wait', 2)
const RETRYING = look('retrying', 'retry', 'wait', 3)
const PAUSED = look('paused', 'bars', 'hold', 4)
const PAUSING = look('pausing', 'bars', 'hold', 4)
const CANCELLING = look('cancelling', 'slash', 'idle', 5)
const RUNNING = look('running', 'play', 'run', 6)
const WAITING = look('waiting', 'clock', 'idle', 7)
const QUEUED = look('queued', 'dot', 'idle', 8)
const NOT_STARTED = look('not_started', 'dashed', 'idle', 9)
const EXCEPTIONS = look('succeeded_with_exceptions', 'hexagon', 'ok', 10)
const SUCCEEDED = look('succeeded', 'check', 'ok', 11)
const UNDONE = look('undone', 'undo', 'hold', 12)
const SKIPPED = look('skipped', 'chevrons', 'idle', 13)
const CANCELLED = look('cancelled', 'slash', 'idle', 14)

const LOOKS = {
  pending: NOT_STARTED,
  armed: NOT_STARTED,
  open: NOT_STARTED,
  previewed: NOT_STARTED,
  queued: QUEUED,
  active: QUEUED,
  ready: QUEUED,
  dispatched: QUEUED,
  locked: QUEUED,
  running: RUNNING,
  executing: RUNNING,
  started: RUNNING,
  begun: RUNNING,
  compensating: RUNNING,
  waiting: WAITING_PERSON,
  awaiting_approval: WAITING_PERSON,
  gated: WAITING,
  blocked: WAITING,
  backoff: RETRYING,
  pausing: PAUSING,
  paused: PAUSED,
  succeeded: SUCCEEDED,
  approved: SUCCEEDED,
  applied: SUCCEEDED,
  fulfilled: SUCCEEDED,
  planned: SUCCEEDED,
  confirmed: SUCCEEDED,
  succeeded_with_exceptions: EXCEPTIONS,
  bypassed: EXCEPTIONS,
  failed: FAILED,
  rejected: FAILED,
  refused: FAILED,
  unfulfilled: FAILED,
  blocked_by_policy: FAILED,
  timed_out: FAILED,
  expired: FAILED,
  compensation_failed: FAILED,
  outcome_unknown: UNKNOWN,
  unknown: UNKNOWN,
  skipped: SKIPPED,
  superseded: SKIPPED,
  stale: SKIPPED,
  ended: SKIPPED,
  not_applicable: SKIPPED,
  withdrawn: SKIPPED,
  removed: SKIPPED,
  cancelled: CANCELLED,
  cancelling: CANCELLING,
  compensated: UNDONE,
} satisfies Record<string, StatusLook>
/** The states with a look. What shows the status of a contract takes no other: a new one is an error of types. */
export type State = keyof typeof LOOKS

/** Returns the look of a state. A state that this release does not know looks unknown, never like a good one. */
export const lookOf = (state: string): StatusLook => (LOOKS as Record<string, StatusLook>)[state] ?? UNKNOWN

/** Causes for which an operation or node waits for a person, not for a machine. */
const PERSON_CAUSES = new Set(['gate', 'failed_node', 'outcome_unknown', 'patch'])

/** Returns an operation's look: blocked on a gate or held failure, it waits for a person; on all else it just waits. */
export const operationLook = (status: string, blockedOn: readonly { kind: string }[] = []): StatusLook =>
  status === 'blocked' && blockedOn.some((cause) => PERSON_CAUSES.has(cause.kind)) ? WAITING_PERSON : lookOf(status)

/** Returns the look of a node; one behind an open gate waits for a person. */
export const nodeLook = (state: string, waitsForPerson = false): StatusLook =>
  state === 'gated' && waitsForPerson ? WAITING_PERSON : lookOf(state)

/** The looks of health states, with the same shapes. */
export const HEALTH_LOOKS: Record<string, { shape: Shape; tone: Tone; rank: number }> = {
  unhealthy: { shape: 'octagon', tone: 'bad', rank: 0 },
  degraded: { shape: 'diamond', tone: 'wait', rank: 1 },
  unknown: { shape: 'question', tone: 'odd', rank: 2 },
  maintenance: { shape: 'bars', tone: 'hold', rank: 3 },
  healthy: { shape: 'check', tone: 'ok', rank: 4 },
}
