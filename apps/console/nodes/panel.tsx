import { useQuery } from '@tanstack/react-query'
import { NodeFacts } from '../briefs/node.tsx'
import { SidePanel } from '../graph/gate-panel.tsx'
import { whileAtWork } from '../graph/progress.ts'
import { nodeQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { Loading } from '../ui/page.tsx'
import { NodeLink } from '../values/links.tsx'
import { NodeStatus } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'

type NodePanelProps = { operation_id: string; node_id: string; close: () => void; children?: React.ReactNode }

/** The node selected in the graph: a summary of its page, beside the drawing. */
export const NodePanel = ({ operation_id, node_id, close, children }: NodePanelProps) => {
  const {
    data: node,
    error,
    isPending,
    refetch,
  } = useQuery({ ...nodeQuery(operation_id, node_id), refetchInterval: whileAtWork })
  return (
    <SidePanel label={tOperation.graph.selected} title={node?.name ?? node_id} close={close}>
      <div className="flex flex-col gap-4 p-4">
        {isPending ? <Loading rows={2} /> : null}
        {error ? <Failure error={error} retry={() => void refetch()} noun="node" /> : null}
        {node ? (
          <>
            <p>
              <NodeStatus state={node.state} person={node.gates.some(({ status }) => status === 'waiting')} badge />
            </p>
            {children}
            <NodeFacts node={node} />
            <p className="flex flex-wrap gap-2">
              <NodeLink operation_id={operation_id} node_id={node_id} className="button">
                {tOperation.graph.open}
              </NodeLink>
              {node.attempt > 0 ? (
                <NodeLink operation_id={operation_id} node_id={node_id} tab="logs" className="button">
                  {tOperation.node.see_logs}
                </NodeLink>
              ) : null}
            </p>
          </>
        ) : null}
      </div>
    </SidePanel>
  )
}
