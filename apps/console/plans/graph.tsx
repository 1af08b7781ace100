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
import { Unread } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Loading } from '../ui/page.tsx'
import { Facts } from '../values/facts.tsx'
import { ResourceLink } from '../values/links.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tPlan } from '../words/plan.ts'

const GraphCanvas = lazyPart(() => import('../graph/canvas.tsx').then((part) => ({ default: part.GraphCanvas })))

/** The graph of a plan before it runs; a press shows the same as a list. */
export const PlanGraph = ({ plan }: { plan: Plan }) => {
  const read = useQuery(planGraphQuery(plan.plan_id))
  const graph = read.data
  if (graph === undefined) return <Unread query={read} />
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
            {node ? <NodeFacts node={node} graph={graph} close={() => show({})} /> : null}
            {gate ? (
              <GatePanel gate={gate} graph={graph} operation_id={plan.operation_id} close={() => show({})} />
            ) : null}
          </div>
        )}
      </div>
    </StatesContext>
  )
}

const NodeFacts = ({ node, graph, close }: { node: Graph['nodes'][number]; graph: Graph; close: () => void }) => {
  const names = new Map(graph.nodes.map(({ node_id, name }) => [node_id, name]))
  const gates = graph.gates.filter(({ gate_id }) => node.gates.includes(gate_id)).map(({ question }) => question)
  return (
    <SidePanel label={tOperation.graph.selected} title={node.name} close={close}>
      <Facts
        className="p-4"
        facts={[
          [tOperation.node.target, node.target_id && <ResourceLink key="target" id={node.target_id} />],
          [tOperation.node.executor, node.executor],
          [tOperation.graph.after, t.and(node.depends_on.map((id) => names.get(id) ?? id))],
          [tPlan.plan.gate_before, gates.join(' ')],
          [tPlan.plan.time, duration(node.estimate_s * 1000)],
        ]}
      />
    </SidePanel>
  )
}
