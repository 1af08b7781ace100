import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Suspense, useMemo } from 'react'
import type { Graph, Plan } from '../api/types.ts'
import { isNarrow, type View as Shown, ViewChoice } from '../forms/view.tsx'
import { largeGroups, useFolding } from '../graph/folding.ts'
import { GatePanel, SidePanel } from '../graph/gate-panel.tsx'
import { gateBox } from '../graph/gates.ts'
import { GraphList } from '../graph/list.tsx'
import { GraphStates, StatesContext } from '../graph/states.ts'
import { duration } from '../kit/format.ts'
import { planGraphQuery } from '../queries/changes.ts'
import { Failure } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { TargetRow } from '../values/target.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tPlan } from '../words/plan.ts'

const GraphCanvas = lazyPart(() => import('../graph/canvas.tsx').then((part) => ({ default: part.GraphCanvas })))

/** The graph of a plan before it runs; a press shows the same as a list. */
export const PlanGraph = ({ plan }: { plan: Plan }) => {
  const { data: graph, error, isPending, refetch } = useQuery(planGraphQuery(plan.plan_id))
  if (isPending) return <Loading />
  if (graph === undefined) return <Failure error={error} retry={() => void refetch()} />
  if (graph.nodes.length === 0) return <p className="text-muted">{tPlan.plan.no_nodes}</p>
  return <View graph={graph} plan={plan} />
}

const View = ({ graph, plan }: { graph: Graph; plan: Plan }) => {
  const search = useSearch({ from: '/shell/plans/$plan_id' })
  const navigate = useNavigate({ from: '/plans/$plan_id' })
  const states = useMemo(() => {
    const made = new GraphStates()
    made.update(graph)
    return made
  }, [graph])
  const [folded, fold] = useFolding(() => largeGroups(graph))
  const show = (chosen: { view?: Shown; node?: string; gate?: string }) =>
    void navigate({
      search: ({ tab, view }) => ({ tab, ...(view === undefined ? {} : { view }), ...chosen }),
      replace: true,
      resetScroll: false,
    })
  const narrow = useMemo(isNarrow, [])
  const view = search.view ?? (narrow ? 'list' : 'drawing')
  const node = graph.nodes.find(({ node_id }) => node_id === search.node)
  const gate = graph.gates.find(({ gate_id }) => gate_id === search.gate)
  return (
    <StatesContext value={states}>
      <div className="flex flex-col gap-4">
        <div className="self-end">
          <ViewChoice view={view} choose={(choice) => show({ view: choice })} />
        </div>
        {view === 'list' ? (
          <GraphList graph={graph} states={states} operation_id={plan.operation_id} only={undefined} />
        ) : (
          <div className="flex flex-col gap-4 lg:flex-row">
            <Suspense fallback={<Loading rows={1} />}>
              <GraphCanvas
                graph={graph}
                name={`plan ${plan.plan_id}`}
                label={tPlan.plan.drawing}
                folded={folded}
                fold={fold}
                selected={node?.node_id ?? (gate && gateBox(gate.gate_id))}
                only={undefined}
                open={(node_id) => show({ node: node_id })}
                openGate={(gate_id) => show({ gate: gate_id })}
              />
            </Suspense>
            {node ? <Facts node={node} graph={graph} close={() => show({})} /> : null}
            {gate ? (
              <GatePanel gate={gate} graph={graph} operation_id={plan.operation_id} close={() => show({})} />
            ) : null}
          </div>
        )}
      </div>
    </StatesContext>
  )
}

const Facts = ({ node, graph, close }: { node: Graph['nodes'][number]; graph: Graph; close: () => void }) => {
  const names = new Map(graph.nodes.map(({ node_id, name }) => [node_id, name]))
  const gates = graph.gates.filter(({ gate_id }) => node.gates.includes(gate_id)).map(({ question }) => question)
  return (
    <SidePanel label={tOperation.graph.selected} title={node.name} close={close}>
      <dl className="facts p-4">
        <TargetRow target_id={node.target_id} />
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
    </SidePanel>
  )
}
