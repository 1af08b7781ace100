import { useCallback, useEffect, useRef, useState } from 'react'
import { type Frame, followLog, type LogLine } from '../../shared/contracts/client/frames.ts'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { api, problemOf, read } from '../api/client.ts'
import { useTopic } from '../api/hooks.ts'
import { onFrame, onServed } from '../api/live.ts'

export type LogState = {
  lines: LogLine[]
  total: number
  complete: boolean
  loading: boolean
  problem: Problem | null
}

const TAIL = 500
/** Lines that are read around one that was asked for. */
const AROUND = 500
const EMPTY: LogState = { lines: [], total: 0, complete: false, loading: true, problem: null }

/** The log of one attempt: its end first, older lines on demand, new ones by the stream. */
export const useLog = (operation_id: string, node_id: string, attempt: number) => {
  const [state, setState] = useState<LogState>(EMPTY)
  const lines = useRef<LogLine[]>([])
  const reading = useRef(false)
  /** News arrived while a read was on its way: read once more behind it. */
  const again = useRef(false)
  useTopic(attempt > 0 ? `log:${operation_id}/${node_id}/${attempt}` : '')

  const page = useCallback(
    (query: { after_seq?: number; before_seq?: number; tail?: boolean; limit?: number; q?: string }) =>
      read(
        api.GET('/v1/operations/{operation_id}/nodes/{node_id}/logs', {
          params: { path: { operation_id, node_id }, query: { attempt, ...query } },
        }),
      ),
    [operation_id, node_id, attempt],
  )

  const extend = useCallback(
    async (where: 'tail' | 'older' | 'newer'): Promise<void> => {
      if (attempt < 1) return
      if (reading.current) {
        if (where === 'newer') again.current = true
        return
      }
      reading.current = true
      try {
        const first = lines.current[0]?.seq ?? 1
        const last = lines.current.at(-1)?.seq ?? 0
        const query =
          where === 'tail'
            ? { tail: true, limit: TAIL }
            : where === 'older'
              ? { before_seq: first, limit: 1000 }
              : { after_seq: last, limit: 2000 }
        const reply = await page(query)
        const known = new Set(where === 'tail' ? [] : lines.current.map((line) => line.seq))
        const news = reply.lines.filter((line) => !known.has(line.seq))
        lines.current =
          where === 'tail' ? news : where === 'older' ? [...news, ...lines.current] : [...lines.current, ...news]
        setState({
          lines: lines.current,
          total: reply.total_lines,
          complete: reply.complete,
          loading: false,
          problem: null,
        })
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
    [attempt, page],
  )

  useEffect(() => {
    lines.current = []
    setState(attempt < 1 ? { ...EMPTY, loading: false } : EMPTY)
    void extend('tail')
  }, [extend, attempt])

  useEffect(
    () =>
      onFrame((frame: Frame) => {
        if (frame.event !== 'log') return
        const { data } = frame
        if (data.operation_id !== operation_id || data.node_id !== node_id || data.attempt !== attempt) return
        const { lines: news, readAfter } = followLog(lines.current.at(-1)?.seq ?? 0, data)
        if (news.length > 0) {
          lines.current = [...lines.current, ...news]
          setState((before) => ({ ...before, lines: lines.current, total: Math.max(before.total, data.to_seq) }))
        }
        if (readAfter !== null) void extend('newer')
      }),
    [operation_id, node_id, attempt, extend],
  )

  // Lines that were written between the first read and the moment when the topic became live.
  useEffect(
    () => onServed((topics) => topics.includes(`log:${operation_id}/${node_id}/${attempt}`) && void extend('newer')),
    [operation_id, node_id, attempt, extend],
  )

  /** Brings a line of this number among those that are held; what is far away is held instead of what was. */
  const reach = useCallback(
    async (seq: number): Promise<void> => {
      const [first, last] = [lines.current[0]?.seq ?? 0, lines.current.at(-1)?.seq ?? 0]
      if (seq >= first && seq <= last) return
      const reply = await page({ before_seq: seq + AROUND / 2, limit: AROUND })
      lines.current = reply.lines
      setState((before) => ({ ...before, lines: lines.current, total: reply.total_lines }))
    },
    [page],
  )
  /** Numbers of the lines of the whole log that contain a text, in any case, and how many there are. */
  const search = useCallback(
    async (q: string): Promise<{ count: number; seqs: number[] }> =>
      (await page({ q, tail: true, limit: 1 })).matches ?? { count: 0, seqs: [] },
    [page],
  )

  return {
    ...state,
    reach,
    search,
    older: () => extend('older'),
    newer: () => extend('newer'),
    again: () => extend('tail'),
  }
}
