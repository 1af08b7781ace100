import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { VListHandle } from 'virtua'
import type { LogLine } from '../../shared/contracts/client/frames.ts'
import { drawnOf, foldsOf, isOpen } from './folds.ts'
import type { useLog } from './lines.ts'

/** The height of an unwrapped line. A wrong guess moves the list when lines are measured, and undoes a scroll. */
export const ROW = 20
const AT_END = 24
/** The list moves once the lines at the new place have been measured, at most this long after it was told to. */
const ARRIVES_MS = 500

/** The lines to draw: those of closed parts are left out until a person or a jump opens them. */
export const useFolds = (lines: LogLine[]) => {
  const [turned, setTurned] = useState<ReadonlyMap<number, boolean>>(new Map())
  const folds = useMemo(() => foldsOf(lines), [lines])
  const rows = useMemo(() => drawnOf(lines, folds, turned), [lines, folds, turned])
  const turn = useCallback((seq: number, open: boolean) => setTurned((before) => new Map(before).set(seq, open)), [])
  /** Opens the part that hides a line; false if none does. */
  const reveal = (seq: number): boolean => {
    const around = folds.find((fold) => seq > fold.seq && seq <= fold.to && !isOpen(fold, turned))
    if (around) turn(around.seq, true)
    return around !== undefined
  }
  return { rows, turn, reveal }
}
export type Folds = ReturnType<typeof useFolds>

/** The visible part of a log: its end while it is followed, otherwise the place that was scrolled to or found. */
export const useScroll = (log: ReturnType<typeof useLog>, { rows, reveal }: Folds) => {
  const list = useRef<VListHandle>(null)
  const [following, setFollowing] = useState(true)
  const [seen, setSeen] = useState(0)
  const [found, setFound] = useState<{ seq: number } | null>(null)
  const last = log.lines.at(-1)?.seq ?? 0
  const first = log.lines[0]?.seq ?? 1
  const prepending = useRef(false)
  /** Moving to a line: meanwhile scroll events do not count, and the line is shown once. */
  const going = useRef(false)
  /** The row that the list was told to show: until it is in view, scroll events tell of the place before. */
  const arriving = useRef<{ at: number }>(undefined)
  const arrive = (at: number) => {
    const one = { at }
    arriving.current = one
    setTimeout(() => {
      if (arriving.current === one) arriving.current = undefined
    }, ARRIVES_MS)
  }

  useEffect(() => {
    if (!following || log.lines.length === 0) return
    setSeen(last)
    list.current?.scrollToIndex(rows.length - 1, { align: 'end' })
  }, [following, last, log.lines.length, rows.length])

  // Runs after the render that added the line, and again after the one that unfolded it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is drawn decides
  useEffect(() => {
    if (!going.current || found === null || reveal(found.seq)) return
    going.current = false
    const at = rows.findIndex(({ line }) => line.seq === found.seq)
    if (at < 0) return
    arrive(at)
    list.current?.scrollToIndex(at, { align: 'center' })
  }, [found, rows])

  // Folded lines may leave the box too short to scroll for older ones.
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is drawn decides
  useEffect(() => {
    const { scrollSize = 0, viewportSize = 0 } = list.current ?? {}
    const short = rows.length < log.lines.length && viewportSize > 0 && scrollSize <= viewportSize
    if (short && first > 1) void log.older()
  }, [rows])

  const scrolled = (offset: number) => {
    if (going.current) return
    const { scrollSize = 0, viewportSize = 0 } = list.current ?? {}
    if (arriving.current !== undefined) {
      const top = list.current?.getItemOffset(arriving.current.at) ?? 0
      if (top < offset || top > offset + viewportSize) return
      arriving.current = undefined
    }
    const atEnd = offset + viewportSize >= scrollSize - AT_END
    setFollowing(atEnd)
    if (atEnd) setSeen(last)
    if (atEnd && last < log.total) void log.newer()
    if (offset < ROW * 10 && first > 1 && !prepending.current) {
      prepending.current = true
      void log.older().finally(() => {
        prepending.current = false
      })
    }
  }
  /** Shows any line of the log; the End key or the pill returns to following the end. */
  const go = async (seq: number) => {
    going.current = true
    setFound(null)
    setFollowing(false)
    await log.reach(seq)
    setFound({ seq })
  }
  const follow = () => {
    going.current = false
    arrive(rows.length - 1)
    setFollowing(true)
  }
  /** Scrolls away from the end by key. A native scroll would be undone while the list measures lines at its end. */
  const leave = (by: 'line' | 'page') => {
    going.current = false
    arriving.current = undefined
    setFollowing(false)
    list.current?.scrollBy(-(by === 'page' ? Math.max(list.current.viewportSize - 2 * ROW, ROW) : 2 * ROW))
  }
  /** The first or the last line in view. */
  const edge = (by: 1 | -1): number => {
    const { scrollOffset = 0, viewportSize = 0 } = list.current ?? {}
    const at = list.current?.findItemIndex(by > 0 ? scrollOffset : scrollOffset + viewportSize - ROW)
    return found?.seq ?? rows.at(at ?? (by > 0 ? 0 : -1))?.line.seq ?? first
  }
  /** Keeps a drawn line in view. */
  const show = (seq: number) => {
    going.current = false
    arriving.current = undefined
    setFollowing(false)
    list.current?.scrollToIndex(
      rows.findIndex(({ line }) => line.seq === seq),
      { align: 'nearest' },
    )
  }
  return {
    list,
    following,
    follow,
    leave,
    edge,
    show,
    news: last - seen,
    last,
    found: found?.seq,
    prepending,
    scrolled,
    go,
  }
}
