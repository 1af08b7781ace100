import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  getLogHead,
  type LogRef,
  latestAttempt,
  listArchivedLines,
  listLines,
  nearestLine,
  searchArchivedLines,
  searchLines,
  wholeLog,
} from '../../../db/operations/history/logs.ts'
import { getNode } from '../../../db/operations/nodes/rows.ts'
import type { LogPage, LogQuery } from '../../shared/contracts/operations/nodes.ts'
import { AppError, notFound, unavailable } from '../../shared/errors.ts'
import { Deadline, withinDeadline } from '../../shared/process/deadline.ts'
import { lookUntil } from '../command/reply.ts'
import type { Uses } from '../deps.ts'

type Place = { operation_id: string; node_id: string }

/** Returns a part of an attempt's log. A node that never began has an empty log; an unknown attempt is not_found. */
export const readLog = async (
  deps: Uses<'db'>,
  reply: FastifyReply,
  place: Place,
  query: LogQuery,
): Promise<LogPage> => {
  const ref = await refOf(deps, place, query)
  if (!ref) return EMPTY
  const { after_seq, wait_ms = 0, stream, level, limit = 500, q, match_before_seq } = query
  const seen = after_seq ?? 0
  const head = await lookUntil(
    reply,
    () => getLogHead(deps.db, ref),
    (found) => found === undefined || found.complete || found.total_lines > seen,
    after_seq === undefined ? 0 : wait_ms,
  )
  if (!head) throw notFound('attempt', String(ref.attempt))
  if (head.storage === 'gone') throw logGone()
  const archived = head.storage === 'archive'
  const filtered = stream !== undefined || level !== undefined
  const [lines, matches] = await Promise.all([
    rangeOf(deps, ref, query, { total: head.total_lines, limit, filtered }).then((range) =>
      (archived ? listArchivedLines : listLines)(deps.db, ref, { ...range, stream, level, limit }),
    ),
    q === undefined ? undefined : (archived ? searchArchivedLines : searchLines)(deps.db, ref, { q, match_before_seq }),
  ])
  return {
    attempt: ref.attempt,
    lines,
    first_seq: lines[0]?.seq ?? null,
    last_seq: lines.at(-1)?.seq ?? null,
    ...head,
    storage: head.storage,
    ...(matches && { matches }),
  }
}

const logGone = () => new AppError('not_found', 'gone', 'This log is past its retention period and no longer stored.')

const EMPTY: LogPage = {
  attempt: 0,
  lines: [],
  first_seq: null,
  last_seq: null,
  total_lines: 0,
  total_bytes: 0,
  complete: false,
  storage: 'hot',
}

/** Without filters a page is a range of numbers, from the line next to the position; with filters all of that side is read. */
const rangeOf = async (
  { db }: Uses<'db'>,
  ref: LogRef,
  { after_seq, before_seq, tail }: LogQuery,
  { total, limit, filtered }: { total: number; limit: number; filtered: boolean },
) => {
  const backwards = before_seq !== undefined || tail === true
  const start = (after_seq ?? 0) + 1
  const from = before_seq !== undefined ? before_seq - 1 : tail ? total : start
  if (filtered)
    return backwards ? { from_seq: start, to_seq: from, backwards } : { from_seq: from, to_seq: total, backwards }
  const next = (await nearestLine(db, ref, from, backwards)) ?? from
  return backwards
    ? { from_seq: Math.max(start, next - limit + 1), to_seq: next, backwards }
    : { from_seq: next, to_seq: next + limit - 1, backwards }
}

const refOf = async (
  deps: Uses<'db'>,
  { operation_id, node_id }: Place,
  { attempt, role = 'run' }: { attempt?: number; role?: 'run' | 'undo' },
): Promise<LogRef | undefined> => {
  if (attempt !== undefined) return { operation_id, node_id, role, attempt }
  const latest = await latestAttempt(deps.db, operation_id, node_id, role)
  if (latest !== undefined) return { operation_id, node_id, role, attempt: latest }
  if (!(await getNode(deps.db, operation_id, node_id))) throw notFound('node', node_id)
  return undefined
}

/** Sends the whole log of an attempt as text, or one range of its bytes. */
export const sendRawLog = async (
  deps: Uses<'db'>,
  req: FastifyRequest,
  reply: FastifyReply,
  place: Place,
  query: { attempt?: number; role?: 'run' | 'undo' },
): Promise<FastifyReply> => {
  const ref = await refOf(deps, place, query)
  const head = ref && (await getLogHead(deps.db, ref))
  if (ref && !head) throw notFound('attempt', String(ref.attempt))
  if (head?.storage === 'gone') throw logGone()
  const text = () => Readable.from(ref ? textOf(deps, ref) : [], { highWaterMark: 1 })
  reply.headers({
    'content-type': 'text/plain; charset=utf-8',
    'content-disposition': `attachment; filename="${place.node_id}.${ref?.attempt ?? 0}.log"`,
    'x-content-type-options': 'nosniff',
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
  })
  let size = 0
  if (req.headers.range !== undefined) {
    for await (const part of text()) {
      if (reply.raw.destroyed) throw tooLate()
      size += part.length
    }
  }
  const range = byteRange(req.headers.range, size)
  if (!range) return reply.send(text())
  return reply
    .code(206)
    .header('content-range', `bytes ${range[0]}-${range[1]}/${size}`)
    .send(Readable.from(cut(text(), range), { highWaterMark: 1 }))
}

const PART_MS = 8000
const tooLate = () => unavailable('The answer took too long.')

/**
 * The text of a log, part by part, on the connections of reads. Each part has a time of its own: how long the
 * whole takes is up to its reader.
 */
async function* textOf({ db }: Uses<'db'>, ref: LogRef): AsyncGenerator<Buffer> {
  const parts = wholeLog(db, ref)
  for (;;) {
    const deadline = new Deadline(performance.now() + PART_MS, tooLate, 'read')
    const { value: lines } = await withinDeadline(deadline, () => parts.next())
    if (!lines) return
    yield Buffer.from(lines.map(({ text }) => `${text}\n`).join(''))
  }
}

async function* cut(parts: AsyncIterable<Buffer>, [from, to]: [number, number]): AsyncGenerator<Buffer> {
  let at = 0
  for await (const part of parts) {
    if (at + part.length > from) yield part.subarray(Math.max(0, from - at), to + 1 - at)
    at += part.length
    if (at > to) return
  }
}

/** Returns one range of RFC 9110; `undefined` if the header requests the whole or several ranges, or is not valid. */
const byteRange = (header: string | undefined, size: number): [number, number] | undefined => {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  if (match[1] !== '' && match[2] !== '' && Number(match[1]) > Number(match[2])) return undefined
  const from = match[1] === '' ? Math.max(0, size - Number(match[2])) : Number(match[1])
  const to = match[1] === '' || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)
  if (from > to || from >= size)
    throw new AppError('validation_error', 'schema_violation', 'The Range is outside the log.', {
      status: 416,
      headers: { 'content-range': `bytes */${size}` },
    })
  return [from, to]
}
