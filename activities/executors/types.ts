import type { Timeouts } from '../../apps/shared/contracts/operations/graph.ts'
import type { LogLine } from '../../db/operations/nodes/attempts.ts'

/** The input of an executor, fully resolved. */
export type ExecutorContext = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  generation: number
  attempt: number
  fence: number
  /** Idempotency key: the same for every repeat of one attempt. */
  key: string
  pool: string
  with: Record<string, unknown>
  /** References to secrets by name. */
  secrets: Record<string, unknown>
  timeouts: Timeouts
  /** Whether the step says that it may be repeated although its effect is unknown. */
  idempotent: boolean
  /** Where an earlier slice or try of this attempt stopped. */
  resume: Record<string, unknown> | null
  /** Whether an earlier slice or try of this attempt may have begun its work; otherwise the claim asked as for a first start. */
  repeated: boolean
  /** Milliseconds since 1970: the attempt's end, and the end of this slice. */
  deadline: number
  slice_end: number
  signal: AbortSignal
  /** Aborted when this worker stops: an executor that is only waiting answers `pending`, and another worker resumes. */
  leave: AbortSignal
  log: (text: string, options?: Partial<Pick<LogLine, 'level' | 'stream' | 'cut'>>) => void
  /** Records that the effect has happened: a repeat resumes from here. False: another attempt has taken over. */
  checkpoint: (resume: Record<string, unknown>) => Promise<boolean>
  /** Resolves when few enough lines are waiting to be stored, so that a heavy writer is held back. */
  stored: () => Promise<void>
  artifact: (artifact: { name: string; kind: string; media_type: string; content: string | Buffer }) => void
}

export type ExecutorResult =
  | { status: 'succeeded'; raw: unknown }
  /** `raw`: the result found despite the failure; outputs are taken from it as from a success. */
  | {
      status: 'failed'
      class: string
      message: string
      retryable?: boolean
      retry_after_s?: number
      hint?: string
      raw?: unknown
    }
  /** It is unknown whether it took effect; `final`: it is not repeated, although the step may be. */
  | { status: 'unknown'; class: string; message: string; final?: boolean }
  /** Not finished: called again later with `resume`. */
  | { status: 'pending'; poll_after_s: number; resume: Record<string, unknown>; progress?: { message: string } }

export type Executor = {
  name: string
  /** It passes references to secrets on, and the agent that does the work resolves them. */
  refers?: boolean
  run: (ctx: ExecutorContext) => Promise<ExecutorResult>
}
