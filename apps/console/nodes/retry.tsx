import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { NodeDetail } from '../api/types.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { objectIn } from '../forms/json.tsx'
import { Radios } from '../forms/select.tsx'
import { waitingBehind } from '../graph/gates.ts'
import { graphQuery } from '../queries/operations.ts'
import { useTyped } from '../session/typed.ts'
import { nodeNames } from '../votes/patch-words.ts'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'

type Effect = { reset_cone?: unknown[]; rearmed_gates?: unknown[] }
type Finding = 'effect_absent' | 'effect_present' | 'effect_partial'
const FINDINGS: Finding[] = ['effect_absent', 'effect_present', 'effect_partial']
const NAMED = 6

/**
 * Retries a node: shows which nodes run again, which wait for that, and which gates ask again. After an unknown outcome,
 * asks what was found at the target.
 */
export const RetryDialog = ({ node: now, close }: { node: NodeDetail; close: () => void }) => {
  /** What the person looked at: a finding about one outcome must not be sent for the next. */
  const [node] = useState(now)
  const client = useQueryClient()
  const graph = useQuery(graphQuery(node.operation_id)).data
  const nameOf = nodeNames(graph?.nodes)
  const behind = graph ? waitingBehind(node.node_id, graph).map(({ node_id }) => node_id) : []
  const unknown = node.state === 'outcome_unknown'
  const path = `/v1/operations/${encodeURIComponent(node.operation_id)}/nodes/${encodeURIComponent(node.node_id)}/retry`
  const [finding, setFinding] = useTyped<Finding | null>(`${path} finding`, null)
  const [inputs, setInputs] = useTyped(`${path} inputs`, '')
  const overrides = objectIn(inputs)
  const reconciliation =
    finding === null ? {} : { reconciliation: { finding, note: tOperation.operation.retry.findings[finding] } }
  return (
    <CommandDialog<Effect, unknown>
      title={tOperation.operation.retry.title}
      button={tOperation.operation.retry.button}
      command={{
        path,
        body: {
          expected_generation: node.generation,
          ...(unknown ? reconciliation : {}),
          ...(overrides && Object.keys(overrides).length > 0 ? { input_overrides: overrides } : {}),
        },
      }}
      text={{ name: 'reason', label: tCommand.reason, needed: true, missing: tCommand.reason_needed }}
      blocked={(unknown && finding === null) || overrides === undefined}
      why={
        now.generation === node.generation && now.state === node.state ? undefined : tOperation.operation.retry.moved
      }
      consequences={(effect) => <Consequences {...effect} behind={behind} nameOf={nameOf} />}
      done={() => {
        for (const noun of ['operation', 'graph', 'nodes', 'node', 'timeline'])
          void client.invalidateQueries({ queryKey: [noun, node.operation_id] })
      }}
      close={close}
    >
      {unknown ? (
        <Radios
          label={tOperation.operation.retry.found}
          choices={FINDINGS.map((choice) => [choice, tOperation.operation.retry.findings[choice]])}
          value={finding}
          change={setFinding}
        />
      ) : null}
      <details>
        <summary>{tOperation.operation.retry.other_inputs}</summary>
        <textarea
          className="input mono mt-2"
          rows={3}
          spellCheck={false}
          value={inputs}
          onChange={(event) => setInputs(event.target.value)}
          aria-label={tChange.intervene.fields.input_overrides.label}
          aria-invalid={overrides === undefined}
          aria-describedby="retry-inputs"
        />
        <p id="retry-inputs" className={overrides === undefined ? 'field-error' : 'text-meta text-muted'}>
          {overrides === undefined
            ? tChange.patch.editor.not_json(tChange.intervene.an_object)
            : tChange.intervene.fields.input_overrides.note}
        </p>
      </details>
    </CommandDialog>
  )
}

type ConsequencesProps = Effect & { behind: string[]; nameOf: (node_id: string) => string }

const Consequences = ({ reset_cone = [], rearmed_gates = [], behind, nameOf }: ConsequencesProps) => {
  const rest = behind.filter((node_id) => !reset_cone.includes(node_id))
  return (
    <>
      <p>{tOperation.operation.retry.effect(cut(reset_cone, nameOf))}</p>
      {rest.length > 0 ? <p>{tOperation.operation.retry.waiting(cut(rest, nameOf))}</p> : null}
      {rearmed_gates.length > 0 ? <p>{tOperation.operation.retry.gates(cut(rearmed_gates))}</p> : null}
    </>
  )
}

const cut = (items: unknown[], nameOf: (id: string) => string = String): string[] => {
  const names = items.map((item) => nameOf(String(item)))
  return names.length > NAMED ? [...names.slice(0, NAMED), t.others(names.length - NAMED)] : names
}
