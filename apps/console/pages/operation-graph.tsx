import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from 'react'
import { graphQuery } from '../api/queries.ts'
import type { Graph } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { tOperation } from '../i18n/operation.ts'
import { Failure } from '../parts/failure.tsx'
import { GraphList } from '../parts/graph-list.tsx'
import { countLooks, GraphStates, StatesContext } from '../parts/graph-states.ts'
import { NodePanel } from '../parts/node-panel.tsx'
import { Loading } from '../parts/page.tsx'
import { ShapeIcon } from '../parts/status.tsx'

const loadCanvas = () => import('../parts/graph-canvas.tsx').then((part) => ({ default: part.GraphCanvas }))
const GraphCanvas = lazy(loadCanvas)
const isNarrow = (): boolean => window.matchMedia('(max-width: 639px)').matches
// The drawing is fetched beside the data that it shows; a phone begins with the list and needs none.
if (!isNarrow()) void loadCanvas()
const FOLD_ABOVE = 200

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
  const [folded, setFolded] = useState<ReadonlySet<string>>(
    () => new Set(graph.nodes.length > FOLD_ABOVE ? graph.groups.map((group) => group.group_id) : []),
  )
  const fold = useCallback((group: string) => {
    setFolded((before) => {
      const next = new Set(before)
      if (!next.delete(group)) next.add(group)
      return next
    })
  }, [])
  const open = useCallback(
    (node: string | undefined) =>
      void navigate({
        search: ({ node: _before, ...rest }) => ({ ...rest, ...(node === undefined ? {} : { node }) }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
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
        <fieldset className="choices" aria-label={tOperation.graph.view}>
          {(['drawing', 'list'] as const).map((choice) => (
            <button
              key={choice}
              type="button"
              aria-pressed={view === choice}
              onClick={() =>
                void navigate({ search: (before) => ({ ...before, view: choice }), replace: true, resetScroll: false })
              }
            >
              {tOperation.graph[choice]}
            </button>
          ))}
        </fieldset>
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
              selected={search.node}
              only={search.only}
              open={open}
            />
          </Suspense>
          {search.node ? (
            <NodePanel operation_id={operation_id} node_id={search.node} close={() => open(undefined)} />
          ) : null}
        </div>
      )}
    </StatesContext>
  )
}
