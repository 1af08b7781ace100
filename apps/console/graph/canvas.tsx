import '@xyflow/react/dist/base.css'
import '../styles/graph.css'
import { type Edge, MiniMap, type Node, ReactFlow, ReactFlowProvider, useReactFlow, useStoreApi } from '@xyflow/react'
import { Maximize, Minus, Plus } from 'lucide-react'
import { useCallback, useContext, useEffect, useId, useMemo, useRef, useState } from 'react'
import { lookOf } from '../../shared/contracts/client/status.ts'
import type { Graph } from '../api/types.ts'
import { statusWord } from '../ui/status.tsx'
import { tOperation } from '../words/operation.ts'
import { FoldedGroup, GateBox, GroupFrame, LineEdge, MARK_TONES, StepNode } from './boxes.tsx'
import { gateOfBox } from './gates.ts'
import { type Drawing, drawGraph, drawingKey, warmUp } from './layout.ts'
import type { PatchedGraph } from './patched.ts'
import { StatesContext } from './states.ts'
import { neighbour } from './walk.ts'

warmUp()

const NODE_TYPES = { node: StepNode, gate: GateBox, group: GroupFrame, folded: FoldedGroup }
const EDGE_TYPES = { line: LineEdge }
/** Below this nobody reads a node's name. */
const READABLE = 0.75
const MAP = { width: 220, height: 76 }

type Props = {
  graph: Graph
  name: string
  folded: ReadonlySet<string>
  fold: (group: string) => void
  /** The box that is selected: a node, or a gate's (`gateBox`). */
  selected: string | undefined
  only: string | undefined
  open: (node_id: string) => void
  openGate: (gate_id: string) => void
  label?: string
  /** What a patch adds, changes and takes out of it. */
  patched?: PatchedGraph
}

/** The drawing: positions come from the layout and stay; states reach their boxes one by one. One tab stop, walked by arrows. */
export const GraphCanvas = (props: Props) => (
  <ReactFlowProvider>
    <Canvas {...props} />
  </ReactFlowProvider>
)

const Canvas = ({ graph, name, folded, fold, selected, only, open, openGate, label, patched }: Props) => {
  const drawing = useDrawing(name, graph, folded, patched !== undefined)
  const states = useContext(StatesContext)
  const flow = useReactFlow()
  const store = useStoreApi()
  const keysId = useId()
  const [at, setAt] = useState<string | undefined>(selected)
  const [focused, setFocused] = useState(false)
  const [spoken, setSpoken] = useState('')
  const first = useRef(true)

  const nodes = useMemo(
    () =>
      drawing === null ? [] : toNodes(drawing, graph, { at: focused ? at : undefined, selected, only, fold, patched }),
    [drawing, graph, at, focused, selected, only, fold, patched],
  )
  const edges = useMemo(() => (drawing === null ? [] : toEdges(drawing, graph, patched)), [drawing, graph, patched])

  const show = useCallback(
    (id: string) => {
      const box = drawing?.boxes.find((candidate) => candidate.id === id)
      if (box === undefined) return
      const parent = drawing?.boxes.find((candidate) => candidate.id === box.parent)
      const zoom = Math.max(flow.getZoom(), READABLE)
      const pane = store.getState()
      const { width, height } = sizeOf(drawing)
      const x = within((parent?.x ?? 0) + box.x + box.width / 2, width, pane.width / zoom)
      const y = within((parent?.y ?? 0) + box.y + box.height / 2, height, pane.height / zoom)
      void flow.setCenter(x, y, { zoom })
    },
    [drawing, flow, store],
  )

  // Opens on everything where that can be read, else on what needs somebody.
  const begin = useCallback(() => {
    if (drawing === null || !first.current) return
    first.current = false
    void flow.fitView({ padding: 0.06, maxZoom: 1 }).then(() => {
      if (flow.getZoom() >= READABLE) return
      const urgent = [...graph.nodes].sort((a, b) => states.look(a).rank - states.look(b).rank)[0]
      const id = selected ?? patched?.marks.keys().next().value ?? urgent?.node_id
      if (id !== undefined) show(id)
    })
  }, [drawing, flow, graph.nodes, patched, selected, show, states])

  const enter = (id: string) => {
    const gate_id = gateOfBox(id)
    if (gate_id === undefined) open(id)
    else openGate(gate_id)
  }
  const speak = (id: string) => {
    const mark = patched?.marks.get(id)
    const gate = states.gate(gateOfBox(id) ?? '')
    if (gate !== undefined) {
      const word = mark ? tOperation.graph.marks[mark].word : statusWord(gate.state)
      return setSpoken(tOperation.graph.spoken_gate(gate.question, word, gate.guards.length))
    }
    const node = states.node(id)
    if (node === undefined) return setSpoken(graph.groups.find((group) => group.group_id === id)?.name ?? id)
    const word = mark ? tOperation.graph.marks[mark].word : statusWord(node.state, states.look(node))
    setSpoken(tOperation.graph.spoken(node.name, word, node.attempt))
  }
  const key = (event: React.KeyboardEvent) => {
    const step = { ArrowRight: 'right', ArrowLeft: 'left', ArrowUp: 'up', ArrowDown: 'down' }[event.key]
    if (step !== undefined && drawing !== null) {
      const next = neighbour(drawing, at ?? graph.nodes[0]?.node_id ?? '', step as 'right')
      setAt(next)
      show(next)
      speak(next)
    } else if (event.key === 'Enter' && at !== undefined) {
      if (folded.has(at)) fold(at)
      else enter(at)
    } else if (event.key === '+') void flow.zoomIn()
    else if (event.key === '-') void flow.zoomOut()
    else if (event.key === '0') void flow.fitView({ padding: 0.06, maxZoom: 1 })
    else return
    event.preventDefault()
  }

  return (
    <div className="graph">
      <p id={keysId} className="sr-only">
        {tOperation.graph.keys}
      </p>
      <div
        className="graph-pane"
        style={{ '--drawing': `${heightOf(drawing)}px` } as React.CSSProperties}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the drawing is one widget with its own keys
        tabIndex={0}
        aria-label={label ?? tOperation.graph.label}
        aria-describedby={keysId}
        onKeyDown={key}
        onFocus={() => {
          setFocused(true)
          setAt((before) => before ?? graph.nodes[0]?.node_id)
        }}
        onBlur={() => setFocused(false)}
      >
        {drawing === null ? (
          <p className="late p-4 text-muted">{tOperation.graph.laying_out}</p>
        ) : (
          <ReactFlow
            nodes={nodes}
            edges={edges}
            nodeTypes={NODE_TYPES}
            edgeTypes={EDGE_TYPES}
            onInit={begin}
            onNodeClick={(_, node) => {
              setAt(node.id)
              if (node.type === 'node' || node.type === 'gate') enter(node.id)
            }}
            minZoom={0.1}
            maxZoom={1.5}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            disableKeyboardA11y
            onlyRenderVisibleElements
            zoomOnDoubleClick={false}
            preventScrolling={false}
            zoomOnScroll={false}
            proOptions={{ hideAttribution: true }}
          >
            <MiniMap
              pannable
              ariaLabel={null}
              nodeClassName={(node) =>
                `map-${node.type} tone-${patched ? markTone(patched, node.id) : toneOf(states, node.id)}`
              }
              style={MAP}
            />
          </ReactFlow>
        )}
      </div>
      <div className="graph-tools">
        <button
          type="button"
          className="button icon"
          aria-label={tOperation.graph.zoom_in}
          title={tOperation.graph.zoom_in}
          onClick={() => void flow.zoomIn()}
        >
          <Plus size={16} aria-hidden="true" />
        </button>
        <button
          type="button"
          className="button icon"
          aria-label={tOperation.graph.zoom_out}
          title={tOperation.graph.zoom_out}
          onClick={() => void flow.zoomOut()}
        >
          <Minus size={16} aria-hidden="true" />
        </button>
        <button
          type="button"
          className="button icon"
          aria-label={tOperation.graph.fit}
          title={tOperation.graph.fit}
          onClick={() => void flow.fitView({ padding: 0.06, maxZoom: 1 })}
        >
          <Maximize size={16} aria-hidden="true" />
        </button>
      </div>
      {drawing?.whole === false ? <p className="p-2 text-table text-muted">{tOperation.graph.layout_failed}</p> : null}
      <p className="sr-only" role="status">
        {spoken}
      </p>
    </div>
  )
}

const sizeOf = (drawing: Drawing | null): { width: number; height: number } => {
  const boxes = drawing?.boxes.filter((box) => box.parent === undefined) ?? []
  return {
    width: Math.max(0, ...boxes.map((box) => box.x + box.width)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  }
}

const MARGIN = 24
/** The centre nearest to the wanted one with nothing but drawing in view; the middle of a drawing that fits. */
const within = (wanted: number, whole: number, seen: number): number =>
  whole + 2 * MARGIN <= seen ? whole / 2 : Math.min(Math.max(wanted, seen / 2 - MARGIN), whole + MARGIN - seen / 2)

/** As high as the drawing needs at a readable size, with room for the map below it. */
const heightOf = (drawing: Drawing | null): number => {
  const { height } = sizeOf(drawing)
  return height === 0 ? 0 : height * 0.9 + 2 * (MAP.height + 24)
}

const toneOf = (states: React.ContextType<typeof StatesContext>, id: string): string => {
  const node = states.node(id)
  const gate = states.gate(gateOfBox(id) ?? '')
  return node ? states.look(node).tone : gate ? lookOf(gate.state).tone : 'idle'
}

const markTone = ({ marks }: PatchedGraph, id: string): string => {
  const mark = marks.get(id)
  return mark ? MARK_TONES[mark] : 'idle'
}

function useDrawing(name: string, graph: Graph, folded: ReadonlySet<string>, compared: boolean): Drawing | null {
  const [drawing, setDrawing] = useState<Drawing | null>(null)
  const key = drawingKey(name, graph, folded)
  const latest = useRef(graph)
  latest.current = graph
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when the layout is another one
  useEffect(() => {
    let left = false
    void drawGraph(key, latest.current, folded, compared).then((done) => {
      if (!left) setDrawing(done)
    })
    return () => {
      left = true
    }
  }, [key])
  return drawing
}

type Marks = {
  at: string | undefined
  selected: string | undefined
  only: string | undefined
  fold: (group: string) => void
  patched: PatchedGraph | undefined
}

function toNodes(drawing: Drawing, graph: Graph, { at, selected, only, fold, patched }: Marks): Node[] {
  const names = new Map(graph.groups.map((group) => [group.group_id, group.name]))
  return drawing.boxes.map(
    (box): Node => ({
      id: box.id,
      type: box.kind,
      position: { x: box.x, y: box.y },
      width: box.width,
      height: box.height,
      data: {
        name: names.get(box.id) ?? box.id,
        at: at === box.id,
        selected: selected === box.id,
        only,
        fold,
        mark: patched?.marks.get(box.id),
        patched: patched !== undefined,
      },
      ...(box.parent === undefined ? {} : { parentId: box.parent }),
      ...(box.kind === 'group' ? { zIndex: -1 } : {}),
    }),
  )
}

function toEdges(drawing: Drawing, graph: Graph, patched: PatchedGraph | undefined): Edge[] {
  const critical = new Set(graph.critical_path)
  return drawing.lines.map(
    (line): Edge => ({
      id: line.id,
      source: line.from,
      target: line.to,
      type: 'line',
      data: {
        points: line.points,
        critical: critical.has(line.from) && critical.has(line.to),
        mark: patched?.lines.get(line.id) ?? (gateOfBox(line.from) && patched?.marks.get(line.from)),
      },
    }),
  )
}
