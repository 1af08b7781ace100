import { ChevronDown, ChevronUp } from 'lucide-react'
import { useRef, useState } from 'react'
import { problemOf } from '../api/client.ts'
import { IconButton } from '../forms/choices.tsx'
import { tOperation } from '../words/operation.ts'

/** A line number greater than any other. */
const NEWEST = 2 ** 31
type Matches = { count: number; seqs: number[]; at: number }
type Search = (q: string, before: number) => Promise<{ count: number; seqs: number[] }>

/** Searches the whole log on the server: the newest match first, then by steps to older (1) and newer ones (-1). */
export const useSearch = (search: Search, go: (seq: number) => void) => {
  const [q, setQ] = useState('')
  const [asked, setAsked] = useState('')
  const [matches, setMatches] = useState<Matches | null>(null)
  const [failed, setFailed] = useState<string | null>(null)
  /** Counts texts and searches: an answer to an earlier one comes too late. */
  const newest = useRef(0)
  /** Shows the match that is `by` steps older; past the last loaded match, reads more. */
  const show = async (by: number, { count, seqs, at }: Matches) => {
    const run = newest.current
    const next = at + by < 0 && seqs.length < count ? 0 : (at + by + count) % count
    const more = next >= seqs.length ? await search(asked, seqs.at(-1) ?? NEWEST) : { seqs: [] }
    if (run !== newest.current) return
    const all = [...seqs, ...more.seqs]
    const reached = Math.min(next, all.length - 1)
    setMatches({ count, seqs: all, at: reached })
    const seq = all[reached]
    if (seq !== undefined) go(seq)
  }
  const fail = (run: number, thrown: unknown) => {
    if (run === newest.current) setFailed(problemOf(thrown).detail)
  }
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const text = q.trim()
    if (text.length < 2) return
    if (text === asked && matches !== null && matches.seqs.length > 0) return step(1)
    newest.current += 1
    const run = newest.current
    try {
      const { count, seqs } = await search(text, NEWEST)
      if (run !== newest.current) return
      setAsked(text)
      setFailed(null)
      const found = { count, seqs, at: 0 }
      if (seqs.length === 0) setMatches(found)
      else await show(0, found)
    } catch (thrown) {
      fail(run, thrown)
    }
  }
  const type = (text: string) => {
    newest.current += 1
    setQ(text)
    setMatches(null)
  }
  const step = (by: 1 | -1) => {
    const run = newest.current
    if (matches) show(by, matches).catch((thrown) => fail(run, thrown))
  }
  const some = matches !== null && matches.seqs.length > 0
  return { q, type, submit, matches, failed, step: some ? step : undefined }
}

export const LogSearch = ({ search: { q, type, submit, matches, failed, step } }: LogSearchProps) => (
  <search>
    <form className="flex flex-wrap items-center gap-2" onSubmit={(event) => void submit(event)}>
      <input
        type="search"
        className="input !w-44"
        placeholder={tOperation.logs.search}
        aria-label={tOperation.logs.search}
        maxLength={200}
        value={q}
        onChange={(event) => type(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          // To the lines, where `n` and `N` work; the browser would empty the field.
          event.preventDefault()
          event.currentTarget.closest('.log')?.querySelector<HTMLElement>('[tabindex="0"]')?.focus()
        }}
      />
      <span role="status" className="text-muted tabular-nums">
        {failed ?? (matches === null ? '' : tOperation.logs.matches(matches.at + 1, matches.count))}
      </span>
      {step ? (
        <>
          <IconButton word={tOperation.logs.previous} onClick={() => step(1)} icon={ChevronUp} />
          <IconButton word={tOperation.logs.next} onClick={() => step(-1)} icon={ChevronDown} />
        </>
      ) : null}
    </form>
  </search>
)
type LogSearchProps = { search: ReturnType<typeof useSearch> }
