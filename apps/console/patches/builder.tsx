import { useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { Graph, PatchChange } from '../api/types.ts'
import { Field } from '../forms/field.tsx'
import { nodeQuery } from '../queries/operations.ts'
import { tChange } from '../words/change.ts'
import { CHOICES, type Choice, draftOf, NEEDS } from './drafts.ts'

type Typed = { node: string; other: string; gate: string; limit: string }

type PatchBuilderProps = {
  graph: Graph
  operation_id: string
  /** The step whose page led here. */
  node?: string
  add: (changes: PatchChange[]) => void
}

/** Chooses a change by its purpose; the result is added to the list below, where it can be edited. */
export const PatchBuilder = ({ graph, operation_id, node: wanted = '', add }: PatchBuilderProps) => {
  const id = useId()
  const client = useQueryClient()
  const [choice, setChoice] = useState<Choice>('insert_before')
  const [typed, setTyped] = useState<Typed>({ node: wanted, other: '', gate: '', limit: '2' })
  const type = (more: Partial<Typed>) => setTyped((before) => ({ ...before, ...more }))
  const needs = NEEDS[choice]
  const given = { ...typed, limit: Number(typed.limit) }
  const complete = needs.every((need) =>
    need === 'limit' ? Number.isInteger(given.limit) && given.limit > 0 : given[need] !== '',
  )
  const press = async () => {
    if (!complete) return
    const inputs =
      choice === 'change_inputs'
        ? (await client.fetchQuery(nodeQuery(operation_id, typed.node)).catch(() => undefined))?.spec.with
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
        <Needed needs={needs} typed={typed} type={type} graph={graph} />
        <button type="button" className="button" aria-disabled={!complete} onClick={() => void press()}>
          {tChange.patch.editor.add_button}
        </button>
      </div>
    </section>
  )
}

type NeededProps = { needs: readonly (keyof Typed)[]; typed: Typed; type: (more: Partial<Typed>) => void; graph: Graph }

/** The fields that the chosen change needs. */
const Needed = ({ needs, typed, type, graph }: NeededProps) => {
  const id = useId()
  const at = (name: keyof Typed) => `${id}-${name}`
  return (
    <>
      {needs.includes('node') ? (
        <Field id={at('node')} label={tChange.patch.editor.node}>
          <NodeSelect id={at('node')} graph={graph} value={typed.node} change={(node) => type({ node })} />
        </Field>
      ) : null}
      {needs.includes('other') ? (
        <Field id={at('other')} label={tChange.patch.editor.other}>
          <NodeSelect id={at('other')} graph={graph} value={typed.other} change={(other) => type({ other })} any />
        </Field>
      ) : null}
      {needs.includes('gate') ? (
        <Field id={at('gate')} label={tChange.patch.editor.gate}>
          <select
            id={at('gate')}
            className="input max-w-full"
            value={typed.gate}
            onChange={(event) => type({ gate: event.target.value })}
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
        <Field id={at('limit')} label={tChange.patch.limit}>
          <input
            id={at('limit')}
            className="input !w-24"
            type="number"
            min={1}
            max={500}
            value={typed.limit}
            onChange={(event) => type({ limit: event.target.value })}
          />
        </Field>
      ) : null}
    </>
  )
}

type NodeSelectProps = { id: string; graph: Graph; value: string; change: (node_id: string) => void; any?: boolean }

/** Steps in plan order. Unless any step may be chosen, steps that have started are marked and come last. */
const NodeSelect = ({ id, graph, value, change, any = false }: NodeSelectProps) => {
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
