import { type EdgeProps, Handle, type NodeProps, Position } from '@xyflow/react'
import { ChevronRight } from 'lucide-react'
import { memo } from 'react'
import { lookOf, type StatusLook, type Tone } from '../../shared/contracts/client/status.ts'
import type { GraphNode } from '../api/types.ts'
import { ShapeIcon, statusWord } from '../values/status.tsx'
import { inSentence } from '../words/frame/language.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import type { Point } from './layout.ts'
import type { Mark } from './patched.ts'
import { useEmphasis, useGateState, useGroupCounts, useNodeState } from './states.ts'

type Data = {
  name: string
  fold: (group: string) => void
  mark: Mark | undefined
  /** Whether the drawing compares two graphs; then a box without a mark is unchanged. */
  patched: boolean
}

export const MARK_TONES: Record<Mark, Tone> = { added: 'ok', changed: 'run', removed: 'bad' }

const Ends = () => (
  <>
    <Handle type="target" position={Position.Left} className="graph-end" isConnectable={false} />
    <Handle type="source" position={Position.Right} className="graph-end" isConnectable={false} />
  </>
)

/** One node of the plan: name, attempt, and status as a shape and a word. Its size is fixed, so it is not measured. */
export const StepNode = memo(({ id, data }: NodeProps) => {
  const { mark, patched } = data as Data
  const { node, look } = useNodeState(id)
  const emphasis = useEmphasis(id, look?.word)
  if (node === undefined || look === undefined) return null
  if (patched) return <ComparedStep node={node} look={look} mark={mark} emphasis={emphasis} />
  return (
    <div className={`step tone-${look.tone} ${emphasis} ${node.kind}`} data-word={look.word}>
      <Ends />
      <ShapeIcon shape={look.shape} tone={look.tone} size={18} />
      <div className="min-w-0 flex-1">
        <p className="truncate text-table font-medium" title={node.name}>
          {node.name}
        </p>
        <p className="truncate text-meta text-muted">
          {statusWord(node.state, look)}
          {node.attempt > 1 ? `, ${inSentence(tOperation.node.attempt(node.attempt))}` : ''}
        </p>
      </div>
    </div>
  )
})

type ComparedStepProps = Pick<Data, 'mark'> & { node: GraphNode; look: StatusLook; emphasis: string }

/** A node in a comparison: added, removed or changed, as sign, word and color; else its state, once it has begun. */
const ComparedStep = ({ node: { name, kind, state }, look, mark, emphasis }: ComparedStepProps) => (
  <div className={`step ${mark ? `tone-${MARK_TONES[mark]} ${mark}` : 'same'} ${emphasis} ${kind}`} data-mark={mark}>
    <Ends />
    {mark || state === 'pending' ? null : <ShapeIcon shape={look.shape} tone={look.tone} size={18} />}
    <div className="min-w-0 flex-1">
      <p className="truncate text-table font-medium" title={name}>
        {mark === 'removed' ? <del>{name}</del> : name}
      </p>
      {mark ? (
        <MarkWord mark={mark} />
      ) : state === 'pending' ? null : (
        <p className="truncate text-meta">{statusWord(state, look)}</p>
      )}
    </div>
  </div>
)

/** A gate before its guarded nodes: its question, and whether it is open, approved or rejected. Round, not square. */
export const GateBox = memo(({ id, data }: NodeProps) => {
  const { mark, patched } = data as Data
  const gate = useGateState(id)
  const look = gate && lookOf(gate.state)
  const emphasis = useEmphasis(id, look?.word)
  if (gate === undefined || look === undefined) return null
  const tone = patched ? (mark ? `tone-${MARK_TONES[mark]} ${mark}` : 'same') : `tone-${look.tone}`
  return (
    <div className={`step gate ${tone} ${emphasis}`} data-gate={gate.gate_id} data-mark={mark}>
      <Ends />
      {patched ? null : <ShapeIcon shape={look.shape} tone={look.tone} size={18} />}
      <div className="min-w-0 flex-1">
        <p className="truncate text-table font-medium" title={gate.question}>
          {mark === 'removed' ? <del>{gate.question}</del> : gate.question}
        </p>
        {mark ? (
          <MarkWord mark={mark} />
        ) : (
          <p className="truncate text-meta text-muted">
            {patched
              ? tOperation.graph.gate
              : tOperation.graph.gate_state(statusWord(gate.state, look), gate.state === 'waiting')}
          </p>
        )}
      </div>
    </div>
  )
})

const MarkWord = ({ mark }: { mark: Mark }) => (
  <p className="mark">
    <span aria-hidden="true" className="mono">
      {tOperation.graph.marks[mark].sign}
    </span>{' '}
    {tOperation.graph.marks[mark].word}
  </p>
)

/** The frame around an unfolded group. */
export const GroupFrame = memo(({ id, data }: NodeProps) => {
  const { name, fold } = data as Data
  return (
    <div className="group-frame">
      <button
        type="button"
        className="group-name"
        tabIndex={-1}
        onClick={() => fold(id)}
        aria-label={tOperation.graph.collapse(name)}
      >
        {name}
        <Counts id={id} />
      </button>
    </div>
  )
})

/** A folded group: its name and its number of nodes in each state, worst first. */
export const FoldedGroup = memo(({ id, data }: NodeProps) => {
  const { name, fold } = data as Data
  const emphasis = useEmphasis(id)
  return (
    <button
      type="button"
      className={`step folded ${emphasis}`}
      tabIndex={-1}
      onClick={() => fold(id)}
      aria-label={tOperation.graph.expand(name)}
    >
      <Ends />
      <ChevronRight size={16} aria-hidden="true" />
      <span className="min-w-0 flex-1 text-left">
        <span className="block truncate text-table font-medium">{name}</span>
        <Counts id={id} />
      </span>
    </button>
  )
})

const Counts = ({ id }: { id: string }) => (
  <span className="flex flex-wrap gap-2 text-meta text-muted">
    {useGroupCounts(id).map(({ look, count }) => (
      <span key={look.word} className="inline-flex items-center gap-1" title={t.status[look.word]}>
        <ShapeIcon shape={look.shape} tone={look.tone} size={12} />
        {count}
      </span>
    ))}
  </span>
)

/** A dependency, drawn along the points of the layout. */
export const LineEdge = memo(({ id, data }: EdgeProps) => {
  const { points, critical, mark } = data as { points: Point[]; critical: boolean; mark?: 'added' | 'removed' }
  const path = points.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x} ${y}`).join(' ')
  return <path id={id} d={path} className={`graph-line ${critical ? 'critical' : ''} ${mark ?? ''}`} fill="none" />
})
