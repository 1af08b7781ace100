/** Frames of GET /v1/events and the rule by which a client applies them (console.md section 4). */
export type Frame =
  | {
      event: 'hello'
      data: { topics: string[]; refused: { topic: string; reason?: string }[]; cursor: string; server_time: string }
    }
  | { event: 'operation'; data: { operation_id: string; change_seq: number } & Record<string, unknown> }
  | { event: 'node'; data: { operation_id: string; node_id: string; change_seq: number } & Record<string, unknown> }
  | { event: 'gate'; data: { operation_id: string; gate_id: string; change_seq: number } & Record<string, unknown> }
  | { event: 'patch'; data: { operation_id: string; patch_id: string; change_seq: number } & Record<string, unknown> }
  | { event: 'resource'; data: { resource_id: string; version: number } & Record<string, unknown> }
  | { event: 'command'; data: { command_id: string; operation_id: string; status: string } & Record<string, unknown> }
  | { event: 'log'; data: LogFrame }
  | { event: 'inbox'; data: Record<string, unknown> }
  | { event: 'resync'; data: { topic: string } }
  | { event: 'bye'; data: { reason: 'token' | 'revoked' | 'shutdown' | 'slow'; retry_ms?: number } }

/** Up to 200 lines; if there were more, only the log's current end. */
export type LogFrame = {
  operation_id: string
  node_id: string
  attempt: number
  from_seq?: number
  to_seq: number
  lines?: LogLine[]
}
export type LogLine = { seq: number; time: string; stream: string; level: string; text: string; cut?: boolean }

const EVENTS = new Set([
  'hello',
  'operation',
  'node',
  'gate',
  'patch',
  'resource',
  'command',
  'log',
  'inbox',
  'resync',
  'bye',
])

/** Parses one server-sent event as a frame; `undefined` for an event that this release does not know or cannot read. */
export const frameFrom = (event: string | undefined, data: string): Frame | undefined => {
  if (event === undefined || !EVENTS.has(event)) return undefined
  try {
    const body: unknown = JSON.parse(data)
    return typeof body === 'object' && body !== null ? ({ event, data: body } as Frame) : undefined
  } catch {
    return undefined
  }
}

export type Place = 'patch' | 'ignore' | 'refetch'

/**
 * Compares a frame with the known state of its object. `fetched` is the change that the last full read contained,
 * `applied` the newest change applied on top of it. One change can bring several frames, so the newest one is still
 * patched. Changes that the full read already contained are ignored. A gap means that a change was missed.
 */
export const placeOf = (known: { fetched: number; applied: number }, seq: number): Place => {
  if (seq <= known.fetched || seq < known.applied) return 'ignore'
  return seq <= known.applied + 1 ? 'patch' : 'refetch'
}

/** Appends new log lines to known ones. After a gap, or for a frame without lines, it returns where to read from. */
export const followLog = (last: number, frame: LogFrame): { lines: LogLine[]; readAfter: number | null } => {
  if (frame.to_seq <= last) return { lines: [], readAfter: null }
  const lines = (frame.lines ?? []).filter((line) => line.seq > last)
  const first = lines[0]
  if (first === undefined || first.seq !== last + 1) return { lines: [], readAfter: last }
  return { lines, readAfter: (lines.at(-1)?.seq ?? last) < frame.to_seq ? (lines.at(-1)?.seq ?? last) : null }
}
