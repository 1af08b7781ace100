import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Suspense, useCallback, useMemo, useRef } from 'react'
import type { Graph } from '../api/types.ts'
import { isNarrow, ViewChoice } from '../forms/view.tsx'
import { largeGroups, useFolding } from '../graph/folding.ts'
import { GatePanel } from '../graph/gate-panel.tsx'
import { gateBox } from '../graph/gates.ts'
import { GraphList } from '../graph/list.tsx'
import { countLooks, GraphStates, StatesContext } from '../graph/states.ts'
import { NodePanel } from '../nodes/panel.tsx'
import { graphQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

const loadCanvas = () => import('../graph/canvas.tsx').then((part) => ({ default: part.GraphCanvas }))
const GraphCanvas = lazyPart(loadCanvas)
// The code of the drawing is fetched beside its data; a phone begins with the list and needs none.
if (!isNarrow()) void loadCanvas()

/** The plan as a graph with live states; the same as a list, one press away. */
export const OperationGraphPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { data: graph, error, isPending, refetch } = useQuery(graphQuery(operation_id))
  if (isPending) return <Loading />
  if (graph === undefined) return <Failure error={error} retry={() => void refetch()} />
  return <GraphView key={operation_id} graph={graph} operation_id={operation_id} />
}

const GraphView = ({ graph, operation_id }: { graph: Graph; operation_id: string }) => {
  const search = useSearch({ from: '/shell/operations/$operation_id/graph' })
  const navigate = useNavigate({ from: '/operations/$operation_id/graph' })
  const states = useRef<GraphStates>(undefined)
  states.current ??= new GraphStates()
  states.current.update(graph)
  const [folded, fold] = useFolding(() => largeGroups(graph))
  const select = useCallback(
    (chosen: { node?: string; gate?: string }) =>
      void navigate({
        search: ({ node: _node, gate: _gate, ...rest }) => ({ ...rest, ...chosen }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
  const open = useCallback((node: string) => select({ node }), [select])
  const openGate = useCallback((gate: string) => select({ gate }), [select])
  const gate = graph.gates.find(({ gate_id }) => gate_id === search.gate)
  const narrow = useMemo(isNarrow, [])
  const view = search.view ?? (narrow ? 'list' : 'drawing')
  const counts = countLooks(states.current, graph.nodes)
  return (
    <StatesContext value={states.current}>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <fieldset className="flex flex-wrap gap-1" aria-label={tOperation.graph.legend}>
          {counts.map(({ look, count }) => (
            <button
              key={look.word}
              type="button"
              className="button quiet legend"
              aria-pressed={search.only === look.word}
              onClick={() =>
                void navigate({
                  search: ({ only, ...rest }) => ({ ...rest, ...(only === look.word ? {} : { only: look.word }) }),
                  replace: true,
                  resetScroll: false,
                })
              }
            >
              <ShapeIcon shape={look.shape} tone={look.tone} />
              {tOperation.graph.only(t.status[look.word], count)}
            </button>
          ))}
        </fieldset>
        <ViewChoice
          view={view}
          choose={(choice) =>
            void navigate({ search: (before) => ({ ...before, view: choice }), replace: true, resetScroll: false })
          }
        />
      </div>
      {view === 'list' ? (
        <GraphList graph={graph} states={states.current} operation_id={operation_id} only={search.only} />
      ) : (
        <div className="flex flex-col gap-4 lg:flex-row">
          <Suspense fallback={<Loading rows={1} />}>
            <GraphCanvas
              graph={graph}
              name={operation_id}
              folded={folded}
              fold={fold}
              selected={search.node ?? (gate && gateBox(gate.gate_id))}
              only={search.only}
              open={open}
              openGate={openGate}
            />
          </Suspense>
          {search.node ? (
            <NodePanel operation_id={operation_id} node_id={search.node} close={() => select({})} />
          ) : gate ? (
            <GatePanel gate={gate} graph={graph} operation_id={operation_id} close={() => select({})} />
          ) : null}
        </div>
      )}
    </StatesContext>
  )
}
