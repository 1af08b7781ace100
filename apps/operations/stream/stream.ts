import type { ServerResponse } from 'node:http'
import type { Db } from '../../../db/client.ts'
import { type LogRef, listLines } from '../../../db/operations/history/logs.ts'
import type { ChangedResource } from '../../../db/operations/history/tail.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Frame } from '../../shared/contracts/client/frames.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import type { Uses } from '../deps.ts'
import { type Waits, withoutHidden } from '../plans/leases.ts'
import { isVisible, maySeeResource, placesFor, type Viewer } from '../policies/authority.ts'
import { countsFor } from '../policies/mine.ts'
import { type LiveChange, resourceFrame } from './frames.ts'
import { type Cursor, encodeCursor } from './resume.ts'
import type { Opened, Topics } from './topics.ts'

const MAX_BUFFERED = 1_048_576
const LOG_LINES = 200
const LOG_BYTES = 65_536

/** One client of the live stream. Everything is written in order; a client that does not read is disconnected. */
export const createStream = (
  deps: Uses<'db'>,
  raw: ServerResponse,
  caller: Caller,
  { topics, accepted }: Opened,
  start: Cursor,
) => {
  const cursor: Cursor = { ...start, l: {} }
  // Keeps only topics that are followed now: a reader may move from log to log all day with one cursor.
  for (const name of [...topics.logs.keys()].map(shortName)) if (start.l[name]) cursor.l[name] = start.l[name]
  let ended = false

  const write = (text: string) => {
    if (ended) return
    raw.write(text)
    if (raw.writableLength > MAX_BUFFERED) end('slow')
  }
  const send = ({ event, data }: Frame, last = true) =>
    write(`${last ? `id: ${encodeCursor(cursor)}\n` : ''}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  const end = (reason: 'token' | 'revoked' | 'shutdown' | 'slow', retry_ms?: number) => {
    if (ended) return
    const data = { reason, ...(retry_ms !== undefined && { retry_ms }) }
    raw.end(`event: bye\ndata: ${JSON.stringify(data)}\n\n`)
    ended = true
    if (reason === 'slow') raw.destroy()
  }

  const counts = () => countsFor(deps.db, caller)

  const deliver = async (change: LiveChange): Promise<void> => {
    const found = await framesFor(deps.db, caller, topics, change, counts)
    const frames = await Promise.all(found.map((frame) => frameFor(deps.db, caller, frame)))
    cursor.p = change.pub_seq
    for (const [index, frame] of frames.entries()) send(frame, index === frames.length - 1)
  }

  const deliverResource = async (changed: ChangedResource): Promise<void> => {
    const { resource_id } = changed.fields
    if (!topics.resources && !topics.resource_ids.has(resource_id)) return
    if (await maySeeResource(deps.db, caller, resource_id)) send(resourceFrame(changed))
  }

  /** Delivers new lines of one followed log; if there are too many, only the last number. */
  const deliverLog = async (topic: string, last_seq: number): Promise<void> => {
    const ref = topics.logs.get(topic)
    const name = shortName(topic)
    const from = (cursor.l[name] ?? 0) + 1
    if (!ref || last_seq < from) return
    const place = { operation_id: ref.operation_id, node_id: ref.node_id, attempt: ref.attempt, to_seq: last_seq }
    cursor.l[name] = last_seq
    send({ event: 'log', data: { ...place, ...(await linesFrom(deps.db, ref, from, last_seq)) } })
  }

  return {
    caller,
    topics,
    cursor,
    send,
    /** Tells the client to read everything again. */
    resync: () => {
      for (const topic of accepted) send({ event: 'resync', data: { topic } })
    },
    comment: () => write(': still here\n\n'),
    end,
    isEnded: () => ended,
    gone: () => {
      ended = true
    },
    deliver,
    deliverResource,
    deliverLog,
  }
}
export type Stream = ReturnType<typeof createStream>

/** Returns the new lines of a log, if they are few and short. */
const linesFrom = async (db: Db, ref: LogRef, from_seq: number, to_seq: number) => {
  if (to_seq - from_seq >= LOG_LINES) return undefined
  const lines = await listLines(db, ref, { from_seq, to_seq, limit: LOG_LINES, backwards: false })
  return JSON.stringify(lines).length <= LOG_BYTES ? { from_seq, lines } : undefined
}

const sees = async (db: Db, caller: Caller, { summary }: LiveChange): Promise<boolean> =>
  summary !== undefined && isVisible(caller, summary.requester_id, await placesFor(db, caller, summary.resource_ids))

/** A frame is built once for all streams, and so may name operations that this reader may not see. */
export const frameFor = async (db: Db, viewer: Viewer, frame: Frame): Promise<Frame> => {
  if (frame.event !== 'operation') return frame
  const [data = frame.data] = await withoutHidden(db, viewer, [frame.data as typeof frame.data & Waits])
  return { ...frame, data }
}

/** Returns the frames of one change: all of them for a followed operation, only the row for the list. */
const framesFor = async (db: Db, caller: Caller, topics: Topics, change: LiveChange, counts: () => Promise<object>) => {
  const followed = topics.operation_ids.has(change.operation_id)
  const listed = topics.operations && change.frames.some(({ event }) => event === 'operation')
  if (change.partial) return (await sees(db, caller, change)) ? reloads(topics, change) : []
  const inbox = topics.inbox && change.inbox.length > 0
  // The outcomes of the caller's own commands, wherever they were given; a followed operation reports them anyway.
  const mine = topics.me && !followed && !listed ? change.outcomes.filter(({ owner }) => owner === caller.user_id) : []
  const frames: Frame[] = mine.map(({ frame }) => frame)
  if (!(followed || listed || inbox) || !(await sees(db, caller, change))) return frames
  frames.push(
    ...change.frames.filter(({ event }) => followed || (listed && (event === 'operation' || event === 'command'))),
  )
  if (!inbox) return frames
  const now = await counts()
  const { operation_id } = change
  return [
    ...frames,
    ...change.inbox.map((item): Frame => ({ event: 'inbox', data: { counts: now, operation_id, ...item } })),
  ]
}

/** A change too large to be told: its followers read again whatever it may have touched. */
const reloads = ({ me, inbox, operations, operation_ids }: Topics, { frames, operation_id }: LiveChange): Frame[] => {
  const followed = operation_ids.has(operation_id)
  const stale = [...(followed ? [`operation:${operation_id}`] : []), ...(inbox ? ['inbox'] : []), ...(me ? ['me'] : [])]
  return [
    ...frames.filter(({ event }) => event === 'operation' && (followed || operations)),
    ...stale.map((topic): Frame => ({ event: 'resync', data: { topic } })),
  ]
}

const shortName = (topic: string): string => sha256Hex(topic).slice(0, 12)
