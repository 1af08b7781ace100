import { startTransition, useState } from 'react'
import type { GraphNode } from '../api/types.ts'
import { tOperation } from '../words/operation.ts'

type FindNodeProps = {
  /** Of the nodes found for the text that `type` received last. */
  count: number
  type: (text: string) => void
  find: (text: string) => GraphNode[]
  open: (node_id: string) => void
}

/** Finds nodes: typing counts and marks them, Enter opens the next, Shift+Enter the previous one. */
export const FindNode = ({ count, type, find, open }: FindNodeProps) => {
  const [text, setText] = useState('')
  const [at, setAt] = useState<number>()
  const move = (step: 1 | -1) => {
    // Marks follow the letters a moment later: Enter may come before them.
    const all = find(text)
    if (all.length === 0) return
    const next = at === undefined ? (step === 1 ? 0 : all.length - 1) : (at + step + all.length) % all.length
    setAt(next)
    const node = all[next]
    if (node !== undefined) open(node.node_id)
  }
  const shown = at === undefined ? undefined : Math.min(at, count - 1) + 1
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
          setText(event.target.value)
          startTransition(() => type(event.target.value))
        }}
        onKeyDown={(event) => event.key === 'Enter' && move(event.shiftKey ? -1 : 1)}
      />
      <span role="status" className="min-w-24 text-table whitespace-nowrap text-muted tabular-nums">
        {text.trim() === '' ? '' : tOperation.graph.found(shown, count)}
      </span>
    </search>
  )
}
