import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Plan } from '../api/types.ts'
import { CommandDialog } from '../command/dialog.tsx'
import { tDecide } from '../words/decide.ts'
import { tPlan } from '../words/plan.ts'

type Effect = { conflicts?: { message?: string }[]; first_nodes?: unknown[]; first_gate?: { question?: string } | null }
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
      consequences={(effect) => <StartEffect effect={effect} />}
      refused={refresh}
      done={({ operation_id }) => {
        refresh()
        if (operation_id) void navigate({ to: '/operations/$operation_id/graph', params: { operation_id } })
      }}
      close={close}
    >
      <fieldset className="flex flex-col gap-2">
        <legend className="label">{words.held}</legend>
        {ON_CONFLICT.map((one) => (
          <label key={one} className="flex items-center gap-2">
            <input type="radio" name="on_conflict" checked={on_conflict === one} onChange={() => setOnConflict(one)} />
            {words[one]}
          </label>
        ))}
      </fieldset>
    </CommandDialog>
  )
}

const StartEffect = ({ effect }: { effect: Effect }) => (
  <>
    <p>
      {tPlan.plan.starting.first(
        effect.first_nodes?.map((node) => String((node as { name?: string }).name ?? node)) ?? [],
      )}
    </p>
    {effect.first_gate?.question ? <p>{tPlan.plan.starting.gate(effect.first_gate.question)}</p> : null}
    {effect.conflicts?.map((conflict) => (
      <p key={conflict.message} lang="en" className="text-wait">
        {conflict.message}
      </p>
    ))}
  </>
)
