import { ChevronDown, ChevronUp } from 'lucide-react'
import { useState } from 'react'
import { problemOf } from '../api/client.ts'
import { tOperation } from '../words/operation.ts'

/** A line number greater than any other. */
const NEWEST = 2 ** 31
type Matches = { count: number; seqs: number[]; at: number }

/** Searches the whole log on the server; shows the newest match first, then steps to older and newer ones. */
export const LogSearch = ({
  search,
  go,
}: {
  search: (q: string, before: number) => Promise<{ count: number; seqs: number[] }>
  go: (seq: number) => void
}) => {
  const [q, setQ] = useState('')
  const [asked, setAsked] = useState('')
  const [matches, setMatches] = useState<Matches | null>(null)
  const [failed, setFailed] = useState<string | null>(null)
  /** Shows the match that is `by` steps older; past the last loaded match, reads more. */
  const step = async (by: number, { count, seqs, at }: Matches) => {
    const next = at + by < 0 && seqs.length < count ? 0 : (at + by + count) % count
    const more = next >= seqs.length ? await search(asked, seqs.at(-1) ?? NEWEST) : { seqs: [] }
    const all = [...seqs, ...more.seqs]
    const reached = Math.min(next, all.length - 1)
    setMatches({ count, seqs: all, at: reached })
    const seq = all[reached]
    if (seq !== undefined) go(seq)
  }
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const text = q.trim()
    if (text.length < 2) return
    try {
      if (text === asked && matches !== null && matches.seqs.length > 0) return await step(1, matches)
      const { count, seqs } = await search(text, NEWEST)
      setAsked(text)
      setFailed(null)
      const found = { count, seqs, at: 0 }
      if (seqs.length === 0) setMatches(found)
      else await step(0, found)
    } catch (thrown) {
      setFailed(problemOf(thrown).detail)
    }
  }
  return (
    <search>
      <form className="flex flex-wrap items-center gap-2" onSubmit={(event) => void submit(event)}>
        <input
          type="search"
          className="input !w-44"
          placeholder={tOperation.logs.search}
          aria-label={tOperation.logs.search}
          maxLength={200}
          value={q}
          onChange={(event) => {
            setQ(event.target.value)
            setMatches(null)
          }}
        />
        <span role="status" className="text-muted tabular-nums">
          {failed ?? (matches === null ? '' : tOperation.logs.matches(matches.at + 1, matches.count))}
        </span>
        {matches !== null && matches.seqs.length > 0 ? (
          <>
            <button
              type="button"
              className="button quiet icon"
              aria-label={tOperation.logs.previous}
              title={tOperation.logs.previous}
              onClick={() => void step(1, matches)}
            >
              <ChevronUp size={16} aria-hidden="true" />
            </button>
            <button
              type="button"
              className="button quiet icon"
              aria-label={tOperation.logs.next}
              title={tOperation.logs.next}
              onClick={() => void step(-1, matches)}
            >
              <ChevronDown size={16} aria-hidden="true" />
            </button>
          </>
        ) : null}
      </form>
    </search>
  )
}
