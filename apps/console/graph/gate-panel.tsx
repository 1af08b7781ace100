import { X } from 'lucide-react'
import { useEffect, useRef } from 'react'
import type { Graph } from '../api/types.ts'
import { IconButton } from '../forms/choices.tsx'
import { isNarrow } from '../forms/view.tsx'
import { GateLink } from '../values/links.tsx'
import { Status } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

type Gate = Graph['gates'][number]

type GatePanelProps = {
  gate: Gate
  graph: Graph
  /** The operation in the path of the gate's page; a plan's gates have no page yet. */
  operation_id: string | null
  close: () => void
}

type SidePanelProps = { label: string; title: string; close: () => void; children: React.ReactNode }

/** What is selected, beside its drawing; on a phone below it, where nobody would look. */
export const SidePanel = ({ label, title, close, children }: SidePanelProps) => {
  const panel = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another selection comes into view as well
  useEffect(() => {
    if (isNarrow()) panel.current?.scrollIntoView()
  }, [title])
  return (
    <aside ref={panel} className="card side-panel" aria-label={label}>
      <div className="card-head">
        <h2 className="card-title min-w-0 flex-1 wrap-anywhere">{title}</h2>
        <IconButton icon={X} word={t.close} size={18} onClick={close} />
      </div>
      {children}
    </aside>
  )
}

/** The gate selected in the graph, beside the drawing: its state, and the nodes that it guards. */
export const GatePanel = ({ gate, graph, operation_id, close }: GatePanelProps) => (
  <SidePanel label={tOperation.graph.selected_gate} title={gate.question} close={close}>
    <div className="flex flex-col items-start gap-4 p-4">
      <Status state={gate.state} badge />
      <div>
        <p className="text-muted">{tOperation.graph.guards}</p>
        <ul>
          {guardedNames(gate, graph, SHOWN).map(([id, name]) => (
            <li key={id} className="wrap-anywhere">
              {name}
            </li>
          ))}
          {gate.guards.length > SHOWN ? <li>{t.others(gate.guards.length - SHOWN)}</li> : null}
        </ul>
      </div>
      {operation_id === null ? null : (
        <GateLink operation_id={operation_id} gate_id={gate.gate_id} className="button">
          {tOperation.graph.open_gate}
        </GateLink>
      )}
    </div>
  </SidePanel>
)

const SHOWN = 50

/** The first of the nodes that a gate guards, with their names. */
export const guardedNames = ({ guards }: Gate, { nodes }: Graph, most: number): [id: string, name: string][] =>
  guards.slice(0, most).map((id) => [id, nodes.find(({ node_id }) => node_id === id)?.name ?? id])
