import { IconButton } from '../forms/choices.tsx'
import '@xyflow/react/dist/base.css'
import '../styles/graph.css'
import {
  getViewportForBounds,
  MiniMap,
  type Node,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  useStoreApi,
} from '@xyflow/react'
import { Maximize, Minus, Plus } from 'lucide-react'
import { memo, useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { lookOf } from '../../shared/contracts/client/status.ts'
import type { Graph } from '../api/types.ts'
import { statusWord } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import { FoldedGroup, GateBox, GroupFrame, LineEdge, MARK_TONES, StepNode } from './boxes.tsx'
import { heightOf, MAP, sizeOf, toEdges, toNodes, within } from './elements.ts'
import { gateOfBox } from './gates.ts'
import { type Drawing, drawGraph, drawingKey, warmUp } from './layout.ts'
import type { PatchedGraph } from './patched.ts'
import { Emphasis, EmphasisContext, StatesContext } from './states.ts'
import { boxAfter } from './walk.ts'

warmUp()

const NODE_TYPES = { node: StepNode, gate: GateBox, group: GroupFrame, folded: FoldedGroup }
const EDGE_TYPES = { line: LineEdge }
/** The minimum zoom at which a view opens: a node's name and state fit. */
const READABLE = 0.85
/** Below this zoom a name does not fit into its box. */
const NAMED = 0.5
const FAR = 0.1
const PADDING = 0.06

type Props = {
  graph: Graph
  name: string
  folded: ReadonlySet<string>
  fold: (group: string) => void
  /** The selected box: a node, or a gate's (`gateBox`). */
  selected: string | undefined
  only: string | undefined
  /** A box to bring into view whenever it changes. */
  seek?: string | undefined
  open: (node_id: string) => void
  openGate: (gate_id: string) => void
  label?: string
  /** The additions, changes and removals of a patch. */
  patched?: PatchedGraph
}

/** The drawing: fixed positions, a state for each box. It has one tab stop; arrow keys move through it. */
export const GraphCanvas = memo((props: Props) => (
  <ReactFlowProvider>
    <Canvas {...props} />
  </ReactFlowProvider>
))

const Canvas = (props: Props) => {
  const { graph, name, folded, label, patched } = props
  const drawing = useDrawing(name, graph, folded, patched !== undefined)
  const camera = useCamera(props, drawing)
  const walk = useWalk(props, drawing, camera)
  const keysId = useId()
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
        onKeyDown={walk.key}
        onFocus={walk.focus}
        onBlur={walk.blur}
      >
        {drawing === null ? (
          <p className="late p-4 text-muted">{tOperation.graph.laying_out}</p>
        ) : (
          <Drawn {...props} drawing={drawing} at={walk.at} begin={camera.begin} press={walk.press} />
        )}
      </div>
      <Tools {...camera} />
      {drawing?.whole === false ? <p className="p-2 text-table text-muted">{tOperation.graph.layout_failed}</p> : null}
      <p className="sr-only" role="status">
        {walk.spoken}
      </p>
    </div>
  )
}

type Camera = ReturnType<typeof useCamera>

/** The visible part of the drawing. */
const useCamera = ({ graph, selected, patched, seek }: Props, drawing: Drawing | null) => {
  const flow = useReactFlow()
  const store = useStoreApi()
  const states = useContext(StatesContext)
  const first = useRef(true)
  const fitAll = useCallback(() => flow.fitView({ padding: PADDING, maxZoom: 1 }), [flow])

  const show = useCallback(
    (id: string, zoom = Math.max(flow.getZoom(), READABLE)) => {
      const box = drawing?.boxes.find((candidate) => candidate.id === id)
      if (box === undefined) return
      const parent = drawing?.boxes.find((candidate) => candidate.id === box.parent)
      const pane = store.getState()
      const { width, height } = sizeOf(drawing)
      const x = within((parent?.x ?? 0) + box.x + box.width / 2, width, pane.width / zoom)
      const y = within((parent?.y ?? 0) + box.y + box.height / 2, height, pane.height / zoom)
      void flow.setCenter(x, y, { zoom })
    },
    [drawing, flow, store],
  )

  /** Opens on the whole graph if that is readable, otherwise on the node that needs a person most. */
  const begin = useCallback(() => {
    if (drawing === null || !first.current) return
    first.current = false
    const pane = store.getState()
    // The whole of a large drawing is not tried first: every box would be drawn for it.
    const whole = getViewportForBounds({ x: 0, y: 0, ...sizeOf(drawing) }, pane.width, pane.height, FAR, 1, PADDING)
    const urgent = [...graph.nodes].sort((a, b) => states.look(a).rank - states.look(b).rank)[0]
    const id = selected ?? patched?.marks.keys().next().value ?? urgent?.node_id
    if (whole.zoom >= READABLE || id === undefined) void fitAll()
    else show(id, READABLE)
  }, [drawing, fitAll, graph.nodes, patched, selected, show, states, store])

  useEffect(() => {
    if (seek !== undefined && !first.current) show(seek)
  }, [seek, show])

  return { show, begin, fit: () => void fitAll(), zoomIn: () => void flow.zoomIn(), zoomOut: () => void flow.zoomOut() }
}

/** The box that the arrow keys have reached, and its description for a screen reader. */
const useWalk = (
  { graph, folded, fold, selected, open, openGate, patched }: Props,
  drawing: Drawing | null,
  camera: Camera,
) => {
  const states = useContext(StatesContext)
  const [at, setAt] = useState<string | undefined>(selected)
  const [focused, setFocused] = useState(false)
  const [spoken, setSpoken] = useState('')
  const start = graph.nodes[0]?.node_id

  const enter = (id: string) => {
    const gate_id = gateOfBox(id)
    if (gate_id === undefined) open(id)
    else openGate(gate_id)
  }
  const wordsOf = (id: string): string => {
    const mark = patched?.marks.get(id)
    const gate = states.gate(gateOfBox(id) ?? '')
    if (gate !== undefined) {
      const word = mark ? tOperation.graph.marks[mark].word : statusWord(gate.state)
      return tOperation.graph.spoken_gate(gate.question, word, gate.guards.length)
    }
    const node = states.node(id)
    if (node === undefined) return graph.groups.find((group) => group.group_id === id)?.name ?? id
    const word = mark ? tOperation.graph.marks[mark].word : statusWord(node.state, states.look(node))
    return tOperation.graph.spoken(node.name, word, node.attempt)
  }
  const key = (event: React.KeyboardEvent) => {
    const next = drawing === null ? undefined : boxAfter(drawing, at ?? start ?? '', event.key)
    if (next !== undefined) {
      setAt(next)
      camera.show(next)
      setSpoken(wordsOf(next))
    } else if (event.key === 'Enter' && at !== undefined) {
      if (folded.has(at)) fold(at)
      else enter(at)
    } else if (event.key === '+') camera.zoomIn()
    else if (event.key === '-') camera.zoomOut()
    else if (event.key === '0') camera.fit()
    else return
    event.preventDefault()
  }
  return {
    at: focused ? at : undefined,
    spoken,
    key,
    focus: () => {
      setFocused(true)
      setAt((before) => before ?? start)
    },
    blur: () => setFocused(false),
    press: ({ id, type }: Node) => {
      setAt(id)
      if (type === 'node' || type === 'gate') enter(id)
    },
  }
}

type DrawnProps = Props & { drawing: Drawing; at: string | undefined; begin: () => void; press: (node: Node) => void }

const Drawn = ({ drawing, graph, at, selected, only, fold, patched, begin, press }: DrawnProps) => {
  const states = useContext(StatesContext)
  const nodes = useMemo(() => toNodes(drawing, graph, { fold, patched }), [drawing, graph, fold, patched])
  const edges = useMemo(() => toEdges(drawing, graph, patched), [drawing, graph, patched])
  const [emphasis] = useState(() => new Emphasis())
  // Before the paint of the key, and in the boxes alone.
  useLayoutEffect(() => emphasis.point({ at, selected, only }), [emphasis, at, selected, only])
  const latest = useRef(press)
  latest.current = press
  const click = useCallback((_: unknown, node: Node) => latest.current(node), [])
  const mapClass = useCallback(
    ({ type, id }: Node) => `map-${type} tone-${patched ? markTone(patched, id) : toneOf(states, id)}`,
    [patched, states],
  )
  return (
    <EmphasisContext value={emphasis}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        aria-label={tOperation.graph.drawing}
        onInit={begin}
        onNodeClick={click}
        minZoom={FAR}
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
        <Labels />
        <MiniMap pannable ariaLabel={null} nodeClassName={mapClass} style={MAP} />
      </ReactFlow>
    </EmphasisContext>
  )
}

/** Labels keep their size on the screen: the styles know the zoom and leave out labels that do not fit. */
const Labels = () => {
  const store = useStoreApi()
  const zoom = useStore(({ transform }) => transform[2])
  useLayoutEffect(() => {
    const pane = store.getState().domNode
    pane?.style.setProperty('--zoom', String(Math.min(1, zoom)))
    pane?.setAttribute('data-labels', zoom >= READABLE ? 'all' : zoom >= NAMED ? 'names' : 'none')
  }, [store, zoom])
  return null
}

const Tools = ({ zoomIn, zoomOut, fit }: Camera) => (
  <div className="graph-tools">
    <IconButton look="" word={tOperation.graph.zoom_in} onClick={zoomIn} icon={Plus} />
    <IconButton look="" word={tOperation.graph.zoom_out} onClick={zoomOut} icon={Minus} />
    <IconButton look="" word={tOperation.graph.fit} onClick={fit} icon={Maximize} />
  </div>
)

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
