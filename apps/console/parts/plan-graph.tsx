import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useMemo, useState } from 'react'
import { duration } from '../api/format.ts'
import { planGraphQuery } from '../api/queries.ts'
import type { Graph, Plan } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { tOperation } from '../i18n/operation.ts'
import { tPlan } from '../i18n/plan.ts'
import { Failure } from './failure.tsx'
import { GraphList } from './graph-list.tsx'
import { GraphStates, StatesContext } from './graph-states.ts'
import { Loading } from './page.tsx'

const GraphCanvas = lazy(() => import('./graph-canvas.tsx').then((part) => ({ default: part.GraphCanvas })))
const FOLD_ABOVE = 200

/** Every node that would run, drawn before anything has; the same as a list, one press away. */
export const PlanGraph = ({ plan }: { plan: Plan }) => {
  const { data: graph, error, isPending, refetch } = useQuery(planGraphQuery(plan.plan_id))
  if (isPending) return <Loading />
  if (graph === undefined) return <Failure error={error} retry={() => void refetch()} />
  if (graph.nodes.length === 0) return <p className="text-muted">{tPlan.plan.no_nodes}</p>
  return <View graph={graph} plan={plan} />
}

const View = ({ graph, plan }: { graph: Graph; plan: Plan }) => {
  const [view, setView] = useState<'drawing' | 'list'>(() =>
    window.matchMedia('(max-width: 639px)').matches ? 'list' : 'drawing',
  )
  const [selected, setSelected] = useState<string>()
  const states = useMemo(() => {
    const made = new GraphStates()
    made.update(graph)
    return made
  }, [graph])
  const [folded, setFolded] = useState<ReadonlySet<string>>(
    () => new Set(graph.nodes.length > FOLD_ABOVE ? graph.groups.map(({ group_id }) => group_id) : []),
  )
  const fold = useCallback((group: string) => {
    setFolded((before) => {
      const next = new Set(before)
      if (!next.delete(group)) next.add(group)
      return next
    })
  }, [])
  const node = graph.nodes.find(({ node_id }) => node_id === selected)
  return (
    <StatesContext value={states}>
      <div className="flex flex-col gap-4">
        <fieldset className="choices self-end" aria-label={tOperation.graph.view}>
          {(['drawing', 'list'] as const).map((choice) => (
            <button key={choice} type="button" aria-pressed={view === choice} onClick={() => setView(choice)}>
              {tOperation.graph[choice]}
            </button>
          ))}
        </fieldset>
        {view === 'list' ? (
          <GraphList graph={graph} states={states} operation_id={plan.operation_id} only={undefined} />
        ) : (
          <>
            <Suspense fallback={<Loading rows={1} />}>
              <GraphCanvas
                graph={graph}
                name={`plan ${plan.plan_id}`}
                label={tPlan.plan.drawing}
                folded={folded}
                fold={fold}
                selected={selected}
                only={undefined}
                open={setSelected}
              />
            </Suspense>
            <div aria-live="polite">{node ? <Facts node={node} graph={graph} /> : null}</div>
          </>
        )}
      </div>
    </StatesContext>
  )
}

const Facts = ({ node, graph }: { node: Graph['nodes'][number]; graph: Graph }) => {
  const names = new Map(graph.nodes.map(({ node_id, name }) => [node_id, name]))
  const gates = graph.gates.filter(({ gate_id }) => node.gates.includes(gate_id)).map(({ question }) => question)
  return (
    <section aria-label={tOperation.graph.selected} className="flex flex-col gap-2">
      <h2 className="card-title wrap-anywhere">{node.name}</h2>
      <dl className="facts">
        {node.target_id === null ? null : (
          <>
            <dt>{tOperation.node.target}</dt>
            <dd>
              <Link to="/resources/$resource_id" params={{ resource_id: node.target_id }} search={{ tab: 'overview' }}>
                {node.target_id}
              </Link>
            </dd>
          </>
        )}
        {node.executor === '' ? null : (
          <>
            <dt>{tOperation.node.executor}</dt>
            <dd>{node.executor}</dd>
          </>
        )}
        {node.depends_on.length === 0 ? null : (
          <>
            <dt>{tOperation.graph.after}</dt>
            <dd>{t.and(node.depends_on.map((id) => names.get(id) ?? id))}</dd>
          </>
        )}
        {gates.length === 0 ? null : (
          <>
            <dt>{tPlan.plan.gate_before}</dt>
            <dd>{gates.join(' ')}</dd>
          </>
        )}
        <dt>{tPlan.plan.time}</dt>
        <dd>{duration(node.estimate_s * 1000)}</dd>
      </dl>
    </section>
  )
}
