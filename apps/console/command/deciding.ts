import { useEffect, useRef, useState } from 'react'

/**
 * The open dialog of a decision; `late` once someone else has ended the question while it was open. The focus then
 * moves to the outcome, because the button that had it no longer exists.
 */
export const useDeciding = <Verdict extends string>(waiting: boolean) => {
  const [deciding, setDeciding] = useState<Verdict | 'late' | null>(null)
  const outcome = useRef<HTMLElement>(null)
  const waited = useRef(false)
  useEffect(() => {
    // A dialog that the end of the question closed does not open again with its next round.
    setDeciding((before) => (waiting ? (before === 'late' ? null : before) : before && 'late'))
    if (waited.current && !waiting && document.activeElement === document.body) outcome.current?.focus()
    waited.current = waiting
  }, [waiting])
  const open = deciding === 'late' ? null : (deciding as Verdict | null)
  return { open, setOpen: setDeciding as (open: Verdict | null) => void, late: deciding === 'late', outcome }
}
