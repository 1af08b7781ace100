import { useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import type { Graph, PatchChange } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { nodeQuery } from '../queries/operations.ts'
import { Refused } from '../ui/failure.tsx'
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
  const [problem, setProblem] = useState<Problem | null>(null)
  const needs = NEEDS[choice]
  const given = { ...typed, limit: Number(typed.limit) }
  const complete = needs.every((need) =>
    need === 'limit' ? Number.isInteger(given.limit) && given.limit > 0 : given[need] !== '',
  )
  const press = async () => {
    if (!complete) return
    setProblem(null)
    try {
      // Without the inputs of the step, the draft would propose to empty them.
      const inputs =
        choice === 'change_inputs'
          ? (await client.fetchQuery(nodeQuery(operation_id, typed.node))).spec.with
          : undefined
      add(draftOf(choice, given, graph, inputs, tChange.patch.editor))
    } catch (thrown) {
      setProblem(problemOf(thrown))
    }
  }
  return (
    <section className="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} className="card-head card-title">
        {tChange.patch.editor.add}
      </h2>
      <div className="flex flex-wrap items-end gap-3 p-4">
        <SelectField
          label={tChange.patch.editor.kind}
          choices={CHOICES.map((one) => [one, tChange.patch.editor.kinds[one]] as const)}
          value={choice}
          change={(one) => setChoice(one as Choice)}
        />
        <Needed needs={needs} typed={typed} type={type} graph={graph} />
        <Button aria-disabled={!complete} onClick={() => void press()} word={tChange.patch.editor.add_button} />
        <Refused problem={problem} />
      </div>
    </section>
  )
}

type NeededProps = { needs: readonly (keyof Typed)[]; typed: Typed; type: (more: Partial<Typed>) => void; graph: Graph }

/** The fields that the chosen change needs. */
const Needed = ({ needs, typed, type, graph }: NeededProps) => (
  <>
    {needs.includes('node') ? (
      <NodeSelect
        label={tChange.patch.editor.node}
        graph={graph}
        value={typed.node}
        change={(node) => type({ node })}
      />
    ) : null}
    {needs.includes('other') ? (
      <NodeSelect
        label={tChange.patch.editor.other}
        graph={graph}
        value={typed.other}
        change={(other) => type({ other })}
        any
      />
    ) : null}
    {needs.includes('gate') ? (
      <SelectField
        label={tChange.patch.editor.gate}
        className="max-w-full"
        choices={[NONE, ...graph.gates.map(({ gate_id, question }) => [gate_id, `${gate_id}: ${question}`] as const)]}
        value={typed.gate}
        change={(gate) => type({ gate })}
      />
    ) : null}
    {needs.includes('limit') ? (
      <TextField
        label={tChange.patch.limit}
        className="input !w-24"
        type="number"
        min={1}
        max={500}
        value={typed.limit}
        change={(limit) => type({ limit })}
      />
    ) : null}
  </>
)

const NONE = ['', tChange.patch.editor.choose] as const

type NodeSelectProps = { label: string; graph: Graph; value: string; change: (node_id: string) => void; any?: boolean }

/** Steps in plan order. Unless any step may be chosen, steps that have started are marked and come last. */
const NodeSelect = ({ graph, any = false, ...select }: NodeSelectProps) => {
  const begun = graph.nodes.filter(({ attempt }) => attempt > 0)
  const rest = graph.nodes.filter(({ attempt }) => attempt === 0)
  const choices = (any ? graph.nodes : [...rest, ...begun]).map(({ node_id, name, attempt }) => {
    return [node_id, attempt > 0 && !any ? `${name} (${tChange.patch.editor.has_begun})` : name] as const
  })
  return <SelectField {...select} className="max-w-full" choices={[NONE, ...choices]} />
}
