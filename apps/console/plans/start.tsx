import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Plan } from '../api/types.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { Radios } from '../forms/select.tsx'
import { Conflicts } from '../values/conflicts.tsx'
import { tDecide } from '../words/decide.ts'
import { tPlan } from '../words/plan.ts'

type Effect = { conflicts: Plan['conflicts']; first_nodes: { name: string }[]; first_gate: string | null }
const ON_CONFLICT = ['queue', 'reject'] as const

/** Starts a plan; asks whether it waits while other operations hold its resources. */
export const StartDialog = ({ plan, close }: { plan: Plan; close: () => void }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [on_conflict, setOnConflict] = useState<(typeof ON_CONFLICT)[number]>('queue')
  const words = tPlan.plan.starting
  const path = `/v1/plans/${encodeURIComponent(plan.plan_id)}/start`
  const body = { reviewed_plan_hash: plan.plan_hash }
  const refresh = () => void client.invalidateQueries({ queryKey: ['plan', plan.plan_id] })
  return (
    <CommandDialog<Effect, { operation_id?: string }>
      title={words.title}
      button={words.button}
      command={{ path, body: { ...body, on_conflict } }}
      // The effect names the conflicts, whichever answer is chosen.
      preview={{ path, body }}
      text={{ name: 'comment', label: tDecide.gate.comment_optional, needed: false, missing: '' }}
      consequences={(effect) => <StartEffect effect={effect} gates={plan.gates} />}
      refused={refresh}
      done={({ operation_id }) => {
        refresh()
        if (operation_id) void navigate({ to: '/operations/$operation_id/graph', params: { operation_id } })
      }}
      close={close}
    >
      <Radios
        label={words.held}
        choices={ON_CONFLICT.map((one) => [one, words[one]])}
        value={on_conflict}
        change={setOnConflict}
      />
    </CommandDialog>
  )
}

const StartEffect = ({ effect, gates }: { effect: Effect; gates: Plan['gates'] }) => {
  const gate = gates.find(({ gate_id }) => gate_id === effect.first_gate)
  return (
    <>
      <p>{tPlan.plan.starting.first(effect.first_nodes.map(({ name }) => name))}</p>
      {gate ? <p>{tPlan.plan.starting.gate(gate.question)}</p> : null}
      <Conflicts conflicts={effect.conflicts} />
    </>
  )
}
