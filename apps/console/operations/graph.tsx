import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { deepEqual, useNavigate, useParams, useRouter, useSearch } from '@tanstack/react-router'
import { memo, Suspense, useCallback, useContext, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Graph, GraphNode } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { isNarrow, type View, ViewChoice } from '../forms/view.tsx'
import { largeGroups, useFolding } from '../graph/folding.ts'
import { GatePanel } from '../graph/gate-panel.tsx'
import { gateBox } from '../graph/gates.ts'
import { GraphList } from '../graph/list.tsx'
import { countLooks, type GraphStates, isBroken, StatesContext, useLiveStates } from '../graph/states.ts'
import { isMatrixFirst, type Matrix, useMatrix } from '../matrix/cells.ts'
import { FindNode } from '../matrix/find.tsx'
import { searchOf } from '../matrix/why.ts'
import { WhyWaiting } from '../matrix/why-panel.tsx'
import { NodePanel } from '../nodes/panel.tsx'
import { errorsQuery, graphQuery } from '../queries/operations.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { Unread } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { ShapeIcon, statusWord } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

const GraphCanvas = lazyPart(() => import('../graph/canvas.tsx').then((part) => ({ default: part.GraphCanvas })))
const GraphMatrix = lazyPart(() => import('../matrix/matrix.tsx').then((part) => ({ default: part.GraphMatrix })))

/** The plan as a graph with live states; a press shows the same as a list. */
export const OperationGraphPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const read = useQuery(graphQuery(operation_id))
  const graph = read.data
  const { view } = useSearch({ from: '/shell/operations/$operation_id/graph' })
  const narrow = useMemo(isNarrow, [])
  // The code of the view loads in parallel with its data, which decide between two unless the address does.
  useEffect(() => {
    if (view === 'list' || (narrow && view === undefined)) return
    for (const part of [GraphMatrix, GraphCanvas])
      if (view === undefined || (view === 'matrix') === (part === GraphMatrix)) void part.preload?.()
  }, [view, narrow])
  if (graph === undefined) return <Unread query={read} />
  return <GraphView key={operation_id} graph={graph} operation_id={operation_id} />
}

/** A phone begins with the list, the same steps on many targets with the matrix; a patch does not change the view. */
const useView = (chosen: View | undefined, graph: Graph, matrix: Matrix | null): View => {
  const [first] = useState<View>(() =>
    isNarrow() ? 'list' : matrix !== null && isMatrixFirst(graph, matrix) ? 'matrix' : 'drawing',
  )
  return chosen ?? first
}

/**
 * The choice in the address, and ways to change it. A choice is shown at once; the address follows after the next paint,
 * because for another address the router draws every link of the page anew.
 */
const useChosen = (operation_id: string) => {
  const address = useSearch({ from: '/shell/operations/$operation_id/graph' })
  const navigate = useNavigate({ from: '/operations/$operation_id/graph' })
  const { history } = useRouter()
  const [ahead, setAhead] = useState<typeof address>()
  const search = ahead ?? address
  const latest = useRef(address)
  latest.current = address
  /** The choices that the address was told of and has not reached, oldest first. */
  const told = useRef<(typeof address)[]>([])
  // A choice that was made since then stays. An address that is none of them, as after Back, ends every choice.
  useEffect(() => {
    const at = told.current.findIndex((choice) => deepEqual(choice, address))
    const reached = told.current[at]
    told.current = at < 0 ? [] : told.current.slice(at + 1)
    setAhead((now) => (reached === undefined || now === reached ? undefined : now))
  }, [address])
  useEffect(() => {
    if (ahead === undefined) return
    const follow = () => {
      // A link that was pressed since then wins.
      if (history.location.pathname !== `/operations/${operation_id}/graph`) return
      told.current.push(ahead)
      void navigate({ search: ahead, replace: true, resetScroll: false })
    }
    let painted: ReturnType<typeof setTimeout>
    const frame = requestAnimationFrame(() => {
      painted = setTimeout(follow)
    })
    return () => {
      cancelAnimationFrame(frame)
      clearTimeout(painted)
    }
  }, [ahead, navigate, history, operation_id])
  const show = useCallback(
    (change: (before: typeof address) => typeof address) => setAhead((before) => change(before ?? latest.current)),
    [],
  )
  const select = useCallback(
    (chosen: { node?: string; gate?: string }) =>
      show(({ node: _node, gate: _gate, ...rest }) => ({ ...rest, ...chosen })),
    [show],
  )
  const open = useCallback((node: string) => select({ node }), [select])
  const openGate = useCallback((gate: string) => select({ gate }), [select])
  return { search, show, select, open, openGate }
}

/** The errors of an operation's nodes by id; only a search reads them. */
const useErrors = (operation_id: string, enabled: boolean): ReadonlyMap<string, string> => {
  const list = useInfiniteQuery({ ...errorsQuery(operation_id), enabled })
  useAllPages(list)
  const { data } = list
  return useMemo(() => new Map(rowsOf({ data }).map((row) => [row.node_id, row.error_message ?? ''])), [data])
}

/** Marks the nodes with a text in their name, state or error; without a text, those in the chosen state. */
const useMarked = (graph: Graph, looks: GraphStates, only: string | undefined, operation_id: string) => {
  const [text, type] = useState('')
  const errors = useErrors(operation_id, text.trim() !== '')
  // biome-ignore lint/correctness/useExhaustiveDependencies: names change only with the plan
  const search = useMemo(() => {
    const status = (node_id: string) => {
      const node = looks.node(node_id)
      return node ? `${statusWord(node.state, looks.look(node))} ${errors.get(node_id) ?? ''}` : ''
    }
    return searchOf(graph.nodes, status)
  }, [graph.plan_revision, looks, errors])
  const find = useCallback((sought: string) => search(sought).all(), [search])
  // biome-ignore lint/correctness/useExhaustiveDependencies: states come with a new graph
  const count = useMemo(() => find(text).length, [graph, find, text])
  const marked = useMemo(() => {
    if (text.trim() !== '') return search(text).matches
    return only ? (node: GraphNode) => looks.look(node).word === only : undefined
  }, [search, looks, only, text])
  return { type, find, count, marked }
}

const GraphView = ({ graph: newest, operation_id }: { graph: Graph; operation_id: string }) => {
  // News of thousands of nodes must not delay a key.
  const graph = useDeferredValue(newest)
  const { search, show, select, open, openGate } = useChosen(operation_id)
  const looks = useLiveStates(graph)
  const [folded, fold] = useFolding(() => largeGroups(graph))
  const [seek, setSeek] = useState<string>()
  // A choice is drawn at once, and a large graph takes longer than a frame.
  const selected = useDeferredValue(search.node)
  const only = useDeferredValue(search.only)
  const matrix = useMatrix(graph)
  const { type, find, count, marked } = useMarked(graph, looks, only, operation_id)
  const counts = useMemo(() => countLooks(looks, graph.nodes), [graph, looks])
  const goTo = (node_id: string) => {
    const group = graph.nodes.find((node) => node.node_id === node_id)?.group
    if (group && folded.has(group)) fold(group)
    setSeek(node_id)
    open(node_id)
  }
  const view = useView(search.view, graph, matrix)
  const gate = graph.gates.find(({ gate_id }) => gate_id === search.gate)
  return (
    <StatesContext value={looks}>
      <Legend counts={counts} only={search.only} show={show} />
      <Broken graph={graph} open={goTo} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <FindNode count={count} type={type} find={find} open={goTo} />
        <ViewChoice
          view={view}
          matrix={matrix !== null}
          choose={(choice) => show((before) => ({ ...before, view: choice }))}
        />
      </div>
      <div className="flex flex-col gap-4 lg:flex-row lg:items-start">
        {view === 'list' ? (
          <div className="min-w-0 flex-1">
            <GraphList
              graph={graph}
              states={looks}
              operation_id={operation_id}
              only={only}
              {...(marked && { marked })}
            />
          </div>
        ) : (
          <Suspense fallback={<Loading rows={1} />}>
            {view === 'matrix' ? (
              <GraphMatrix states={looks} {...{ operation_id, graph, matrix, selected, marked, open, openGate }} />
            ) : (
              <GraphCanvas
                name={operation_id}
                selected={selected ?? (gate && gateBox(gate.gate_id))}
                {...{ graph, folded, fold, only, seek, open, openGate }}
              />
            )}
          </Suspense>
        )}
        <Panel {...{ operation_id, graph, selected, gate, select }} />
      </div>
    </StatesContext>
  )
}

type PanelProps = {
  operation_id: string
  graph: Graph
  selected: string | undefined
  gate: Graph['gates'][number] | undefined
  select: ReturnType<typeof useChosen>['select']
}

const Panel = ({ operation_id, graph, selected, gate, select }: PanelProps) => {
  const looks = useContext(StatesContext)
  const close = () => select({})
  if (selected)
    return (
      <NodePanel operation_id={operation_id} node_id={selected} close={close}>
        <WhyWaiting graph={graph} states={looks} node_id={selected} select={select} />
      </NodePanel>
    )
  return gate ? <GatePanel gate={gate} graph={graph} operation_id={operation_id} close={close} /> : null
}

/** The first nodes that failed, by name, whichever part of the graph is in view. */
const Broken = ({ graph, open }: { graph: Graph; open: (node_id: string) => void }) => {
  const looks = useContext(StatesContext)
  const broken = useMemo(() => graph.nodes.filter(({ node_id }) => isBroken(looks, node_id)), [graph, looks])
  if (broken.length === 0) return null
  return (
    <ul className="flex flex-wrap items-center gap-x-4 gap-y-1" aria-label={tOperation.graph.broken}>
      {broken.slice(0, MOST_BROKEN).map((node) => (
        <li key={node.node_id} className="flex items-center gap-1">
          <ShapeIcon {...looks.look(node)} />
          <button
            type="button"
            className="text-left text-accent underline wrap-anywhere"
            onClick={() => open(node.node_id)}
          >
            {node.name}
          </button>
        </li>
      ))}
      {broken.length > MOST_BROKEN ? <li className="text-muted">{t.others(broken.length - MOST_BROKEN)}</li> : null}
    </ul>
  )
}
const MOST_BROKEN = 5

type LegendProps = {
  counts: ReturnType<typeof countLooks>
  only: string | undefined
  show: ReturnType<typeof useChosen>['show']
}

/** The number of nodes in each state; pressing one shows only its nodes, and pressing it again shows all. */
const Legend = memo(({ counts, only, show }: LegendProps) => (
  <fieldset className="flex flex-wrap gap-1" aria-label={tOperation.graph.legend}>
    {counts.map(({ look, count }) => (
      <Button
        key={look.word}
        look="quiet legend"
        aria-pressed={only === look.word}
        onClick={() =>
          show(({ only: before, ...rest }) => ({ ...rest, ...(before !== look.word && { only: look.word }) }))
        }
      >
        <ShapeIcon shape={look.shape} tone={look.tone} />
        {tOperation.graph.only(t.status[look.word], count)}
      </Button>
    ))}
  </fieldset>
))
