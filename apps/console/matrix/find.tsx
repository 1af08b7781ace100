import { useState } from 'react'
import { tOperation } from '../words/operation.ts'

type FindNodeProps = { text: string; ids: string[]; type: (text: string) => void; open: (node_id: string) => void }

/** Finds nodes: typing counts and marks them, Enter opens the next, Shift+Enter the previous one. */
export const FindNode = ({ text, ids, type, open }: FindNodeProps) => {
  const [at, setAt] = useState<number>()
  const move = (step: 1 | -1) => {
    if (ids.length === 0) return
    const next = at === undefined ? (step === 1 ? 0 : ids.length - 1) : (at + step + ids.length) % ids.length
    setAt(next)
    const id = ids[next]
    if (id !== undefined) open(id)
  }
  const shown = at === undefined ? undefined : Math.min(at, ids.length - 1) + 1
  return (
    <search className="flex w-full max-w-96 items-center gap-2">
      <input
        type="search"
        className="input min-w-0 flex-1"
        aria-label={tOperation.graph.find}
        placeholder={tOperation.graph.find}
        value={text}
        onChange={(event) => {
          setAt(undefined)
          type(event.target.value)
        }}
        onKeyDown={(event) => event.key === 'Enter' && move(event.shiftKey ? -1 : 1)}
      />
      <span role="status" className="min-w-24 text-table whitespace-nowrap text-muted tabular-nums">
        {text.trim() === '' ? '' : tOperation.graph.found(shown, ids.length)}
      </span>
    </search>
  )
}
