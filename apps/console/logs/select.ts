import { useNavigate } from '@tanstack/react-router'
import { useRef } from 'react'
import { isIn, type Range, rangeOf } from './line.tsx'
import type { Folds, useScroll } from './scroll.ts'

/** A selection by keys: one end stays, the other moves. */
export type Ends = { fixed: number; head: number }

/** The ends after the head has moved to the next or previous of the drawn lines. */
const moved = (seqs: readonly number[], { fixed, head }: Ends, by: 1 | -1): Ends => ({
  fixed,
  head: (by > 0 ? seqs.find((seq) => seq > head) : seqs.findLast((seq) => seq < head)) ?? head,
})

/** Selects lines by keys, from the selected ones or from the edge of the view; the address names them. */
export const useSelect = ({ rows }: Folds, scroll: ReturnType<typeof useScroll>, attempt: number) => {
  const navigate = useNavigate()
  const kept = useRef<Ends>(undefined)
  return (by: 1 | -1): Range => {
    // The page may not show the last key yet, the address does.
    const range = rangeOf(location.hash.slice(1))
    const { fixed, head } = kept.current ?? { fixed: 0, head: 0 }
    const same = range?.from === Math.min(fixed, head) && range.to === Math.max(fixed, head)
    // A line that was found since then begins another selection.
    const on = range && (scroll.found === undefined || isIn(range, scroll.found)) ? range : null
    const ends = on && (same ? { fixed, head } : { fixed: on.from, head: on.to })
    const start = scroll.edge(by)
    const seqs = rows.map(({ line }) => line.seq)
    const next = ends ? moved(seqs, ends, by) : { fixed: start, head: start }
    kept.current = next
    const [from, to] = [Math.min(next.fixed, next.head), Math.max(next.fixed, next.head)]
    scroll.show(next.head)
    void navigate({
      ...{ to: '.', hash: from === to ? `L${from}` : `L${from}-L${to}`, replace: true },
      ...{ search: (before: object) => ({ ...before, attempt }), resetScroll: false, hashScrollIntoView: false },
    })
    return { from, to }
  }
}
