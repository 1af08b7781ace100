import { useCallback, useEffect, useRef, useState } from 'react'
import { type Frame, followLog, type LogLine } from '../../shared/contracts/client/frames.ts'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { api, problemOf, read } from '../api/client.ts'
import { useConnection, useTopic } from '../api/hooks.ts'
import { onFrame, onServed } from '../api/live.ts'

export type LogState = { lines: LogLine[]; total: number; complete: boolean; loading: boolean; problem: Problem | null }

const TAIL = 500
/** How many lines are read around a requested one. */
const AROUND = 500
/** As many lines are read at once. */
const MOST = 2000
const POLL_MS = 5000
const EMPTY: LogState = { lines: [], total: 0, complete: false, loading: true, problem: null }

type Query = Partial<Record<'after_seq' | 'before_seq' | 'limit' | 'match_before_seq', number>> & {
  tail?: boolean
  q?: string
  level?: 'error' | 'warn'
}
type Span = { from: number; to: number }
type Where = 'tail' | 'older' | 'newer'

const queryOf = (where: Where, held: readonly LogLine[]): Query =>
  where === 'tail'
    ? { tail: true, limit: TAIL }
    : where === 'older'
      ? { before_seq: held[0]?.seq ?? 1, limit: 1000 }
      : { after_seq: held.at(-1)?.seq ?? 0, limit: MOST }

/** Joins held lines and those read next to `asked`, each once; after a jump, drops lines that no longer adjoin. */
export const joined = (
  where: Where,
  asked: readonly LogLine[],
  held: readonly LogLine[],
  read: readonly LogLine[],
): LogLine[] => {
  if (where === 'tail') return [...read]
  const known = new Set(held.map((line) => line.seq))
  const news = read.filter((line) => !known.has(line.seq))
  if (where === 'older') return held[0]?.seq === asked[0]?.seq ? [...news, ...held] : [...held]
  return known.has(asked.at(-1)?.seq ?? 0) || held.length === 0 ? [...held, ...news] : [...held]
}

/** All lines of a range, however many of them are held. */
export const linesOf = async (
  page: (query: Query) => Promise<{ lines: LogLine[] }>,
  { from, to }: Span,
): Promise<LogLine[]> => {
  const found: LogLine[] = []
  for (let after_seq = from - 1; after_seq < to; ) {
    const { lines } = await page({ after_seq, limit: Math.min(MOST, to - after_seq) })
    const last = lines.at(-1)
    if (last === undefined) break
    found.push(...lines)
    after_seq = last.seq
  }
  // Where lines are missing, the last page reaches further.
  return found.filter(({ seq }) => seq <= to)
}

/** Reads the log of one attempt, part by part. */
const usePages = (operation_id: string, node_id: string, attempt: number) =>
  useCallback(
    (query: Query) =>
      read(
        api.GET('/v1/operations/{operation_id}/nodes/{node_id}/logs', {
          params: { path: { operation_id, node_id }, query: { attempt, ...query } },
        }),
      ),
    [operation_id, node_id, attempt],
  )

/** The held lines, and functions that read more; one read at a time. */
const useLines = (page: ReturnType<typeof usePages>, attempt: number) => {
  const [state, setState] = useState<LogState>(EMPTY)
  const lines = useRef<LogLine[]>([])
  const reading = useRef(false)
  /** News arrived during a read, so read once more after it. */
  const again = useRef(false)

  const hold = useCallback((next: LogLine[], change: (before: LogState) => Partial<LogState>) => {
    lines.current = next
    setState((before) => ({ ...before, lines: next, ...change(before) }))
  }, [])

  const extend = useCallback(
    async (where: Where): Promise<void> => {
      if (attempt < 1) return
      if (reading.current) {
        if (where === 'newer') again.current = true
        return
      }
      reading.current = true
      try {
        const asked = lines.current
        // Without a held line, such as after a first read that failed, the end is read: a log may be long.
        const reply = await page(queryOf(asked.length === 0 ? 'tail' : where, asked))
        hold(joined(where, asked, lines.current, reply.lines), () => ({
          total: reply.total_lines,
          complete: reply.complete,
          loading: false,
          problem: null,
        }))
      } catch (thrown) {
        setState((before) => ({ ...before, loading: false, problem: problemOf(thrown) }))
      } finally {
        reading.current = false
        if (again.current) {
          again.current = false
          void extend('newer')
        }
      }
    },
    [attempt, hold, page],
  )

  useEffect(() => {
    lines.current = []
    setState(attempt < 1 ? { ...EMPTY, loading: false } : EMPTY)
    void extend('tail')
  }, [extend, attempt])
  return { state, lines, hold, extend }
}

/** The log of one attempt: its end first, older lines on demand, new ones through the stream. */
export const useLog = (operation_id: string, node_id: string, attempt: number) => {
  const topic = `log:${operation_id}/${node_id}/${attempt}`
  useTopic(attempt > 0 ? topic : '')
  const page = usePages(operation_id, node_id, attempt)
  const { state, lines, hold, extend } = useLines(page, attempt)

  useEffect(
    () =>
      onFrame((frame: Frame) => {
        if (frame.event !== 'log') return
        const { data } = frame
        if (data.operation_id !== operation_id || data.node_id !== node_id || data.attempt !== attempt) return
        const { lines: news, readAfter } = followLog(lines.current.at(-1)?.seq ?? 0, data)
        if (news.length > 0) hold([...lines.current, ...news], ({ total }) => ({ total: Math.max(total, data.to_seq) }))
        if (readAfter !== null) void extend('newer')
      }),
    [operation_id, node_id, attempt, lines, hold, extend],
  )

  // Reads lines that were written between the first read and the moment when the topic became live.
  useEffect(() => onServed((topics) => topics.includes(topic) && void extend('newer')), [topic, extend])

  // Without the stream no frame brings lines.
  const polls = useConnection().mode === 'polling' && !state.complete
  useEffect(() => {
    if (!polls) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void extend('newer'), POLL_MS)
    return () => clearInterval(timer)
  }, [polls, extend])

  /** Loads a line; if it is far away, the lines around it replace the held ones. */
  const reach = useCallback(
    async (seq: number): Promise<void> => {
      const [first, last] = [lines.current[0]?.seq ?? 0, lines.current.at(-1)?.seq ?? 0]
      if (seq >= first && seq <= last) return
      try {
        const reply = await page({ before_seq: seq + AROUND / 2, limit: AROUND })
        hold(reply.lines, () => ({ total: reply.total_lines, problem: null }))
      } catch (thrown) {
        hold(lines.current, () => ({ problem: problemOf(thrown) }))
      }
    },
    [page, lines, hold],
  )
  /** How many lines of the log contain a text, ignoring case, and the numbers of the newest ones before a line. */
  const search = useCallback(
    async (q: string, match_before_seq: number): Promise<{ count: number; seqs: number[] }> =>
      (await page({ q, match_before_seq, tail: true, limit: 1 })).matches ?? { count: 0, seqs: [] },
    [page],
  )
  /** The number of the line of a level that is nearest to a line, after it or before it; undefined if none is. */
  const nearest = useCallback(
    async (level: 'error' | 'warn', place: Pick<Query, 'after_seq' | 'before_seq'>): Promise<number | undefined> => {
      const reply = await page({ level, limit: 1, ...place }).catch(() => undefined)
      return reply?.lines[0]?.seq
    },
    [page],
  )

  return {
    ...state,
    reach,
    search,
    nearest,
    older: () => extend('older'),
    newer: () => extend('newer'),
    again: () => extend('tail'),
    within: (range: Span) => linesOf(page, range),
  }
}
