import { useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { Graph, PatchChange } from '../api/types.ts'
import { nodeQuery } from '../queries/operations.ts'
import { tChange } from '../words/change.ts'
import { CHOICES, type Choice, draftOf, NEEDS } from './drafts.ts'

/** Chooses a change by what it is for; what comes of it stands in the list below and can be edited there. */
export const PatchBuilder = ({
  graph,
  operation_id,
  node: wanted = '',
  add,
}: {
  graph: Graph
  operation_id: string
  /** The step from which one came here. */
  node?: string
  add: (changes: PatchChange[]) => void
}) => {
  const id = useId()
  const client = useQueryClient()
  const [choice, setChoice] = useState<Choice>('insert_before')
  const [node, setNode] = useState(wanted)
  const [other, setOther] = useState('')
  const [gate, setGate] = useState('')
  const [limit, setLimit] = useState('2')
  const needs = NEEDS[choice]
  const given = { node, other, gate, limit: Number(limit) }
  const complete = needs.every((need) =>
    need === 'limit' ? Number.isInteger(given.limit) && given.limit > 0 : given[need] !== '',
  )
  const press = async () => {
    if (!complete) return
    const inputs =
      choice === 'change_inputs'
        ? (await client.fetchQuery(nodeQuery(operation_id, node)).catch(() => undefined))?.spec.with
        : undefined
    add(draftOf(choice, given, graph, inputs, tChange.patch.editor))
  }
  return (
    <section className="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} className="card-head card-title">
        {tChange.patch.editor.add}
      </h2>
      <div className="flex flex-wrap items-end gap-3 p-4">
        <Field id={`${id}-kind`} label={tChange.patch.editor.kind}>
          <select
            id={`${id}-kind`}
            className="input"
            value={choice}
            onChange={(event) => setChoice(event.target.value as Choice)}
          >
            {CHOICES.map((one) => (
              <option key={one} value={one}>
                {tChange.patch.editor.kinds[one]}
              </option>
            ))}
          </select>
        </Field>
        {needs.includes('node') ? (
          <Field id={`${id}-node`} label={tChange.patch.editor.node}>
            <NodeSelect id={`${id}-node`} graph={graph} value={node} change={setNode} />
          </Field>
        ) : null}
        {needs.includes('other') ? (
          <Field id={`${id}-other`} label={tChange.patch.editor.other}>
            <NodeSelect id={`${id}-other`} graph={graph} value={other} change={setOther} any />
          </Field>
        ) : null}
        {needs.includes('gate') ? (
          <Field id={`${id}-gate`} label={tChange.patch.editor.gate}>
            <select
              id={`${id}-gate`}
              className="input max-w-full"
              value={gate}
              onChange={(event) => setGate(event.target.value)}
            >
              <option value="">{tChange.patch.editor.choose}</option>
              {graph.gates.map(({ gate_id, question }) => (
                <option key={gate_id} value={gate_id}>
                  {gate_id}: {question}
                </option>
              ))}
            </select>
          </Field>
        ) : null}
        {needs.includes('limit') ? (
          <Field id={`${id}-limit`} label={tChange.patch.limit}>
            <input
              id={`${id}-limit`}
              className="input !w-24"
              type="number"
              min={1}
              max={500}
              value={limit}
              onChange={(event) => setLimit(event.target.value)}
            />
          </Field>
        ) : null}
        <button type="button" className="button" aria-disabled={!complete} onClick={() => void press()}>
          {tChange.patch.editor.add_button}
        </button>
      </div>
    </section>
  )
}

const Field = ({ id, label, children }: { id: string; label: string; children: React.ReactNode }) => (
  <div className="min-w-0">
    <label className="label" htmlFor={id}>
      {label}
    </label>
    {children}
  </div>
)

/** Steps in the order of the plan; those that have begun are named so, and stand last where only others can change. */
const NodeSelect = ({
  id,
  graph,
  value,
  change,
  any = false,
}: {
  id: string
  graph: Graph
  value: string
  change: (node_id: string) => void
  any?: boolean
}) => {
  const begun = graph.nodes.filter(({ attempt }) => attempt > 0)
  const rest = graph.nodes.filter(({ attempt }) => attempt === 0)
  const shown = any ? graph.nodes : [...rest, ...begun]
  return (
    <select id={id} className="input max-w-full" value={value} onChange={(event) => change(event.target.value)}>
      <option value="">{tChange.patch.editor.choose}</option>
      {shown.map(({ node_id, name, attempt }) => (
        <option key={node_id} value={node_id}>
          {name}
          {attempt > 0 && !any ? ` (${tChange.patch.editor.has_begun})` : ''}
        </option>
      ))}
    </select>
  )
}
