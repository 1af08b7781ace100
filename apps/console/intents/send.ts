import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { When } from '../../shared/contracts/operations/schedules.ts'
import { type Command, commandSender } from '../api/commands.ts'
import { fieldsOf } from '../forms/schema.tsx'
import { resourceTypeQuery, targetsQuery } from '../queries/resources.ts'
import { lockedOf, sharedOf, type What } from './draft.ts'

type Asked = { body: Command['body']; schedule?: { when: When; proceed: 'plan' | 'start' } | undefined }

/**
 * Creates an intent and its plan, or a schedule for it, and opens the result. After a missing answer it is `frozen`: it
 * sends again only what it sent, with the same key.
 */
export const useIntent = () => {
  const navigate = useNavigate()
  const [made, setMade] = useState(false)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [frozen, setFrozen] = useState<Asked>()
  const [sender] = useState(commandSender)
  const sendOnce = async <Reply>(command: Command, asked: Asked) => {
    const outcome = await sender<Reply>(command)
    setFrozen(outcome.kind === 'unknown' ? asked : undefined)
    if ('reply' in outcome) return outcome.reply
    setProblem(outcome.problem)
    return undefined
  }
  const planOf = async (asked: Asked) => {
    const intent = await sendOnce<{ intent_id: string }>({ path: '/v1/intents', body: asked.body }, asked)
    if (intent === undefined) return undefined
    setMade(true)
    const path = `/v1/intents/${encodeURIComponent(intent.intent_id)}/plan-preview`
    return sendOnce<{ plan_id: string }>({ path, body: {} }, asked)
  }
  const send = async (given: Asked): Promise<void> => {
    const asked = frozen ?? given
    const { body, schedule } = asked
    setBusy(true)
    setProblem(null)
    setMade(false)
    if (schedule !== undefined) {
      const intent = { ...body, retry_of: undefined, ...('on' in schedule.when && { targets: undefined }) }
      const made = await sendOnce<{ schedule_id: string }>(
        { path: '/v1/schedules', body: { ...schedule, intent } },
        asked,
      )
      if (made !== undefined)
        return navigate({ to: '/schedules/$schedule_id', params: { schedule_id: made.schedule_id } })
      return setBusy(false)
    }
    const plan = await planOf(asked)
    if (plan !== undefined)
      return navigate({ to: '/plans/$plan_id', params: { plan_id: plan.plan_id }, search: { tab: 'changes' } })
    setBusy(false)
  }
  return { made, busy, problem, frozen: frozen !== undefined, send }
}

/**
 * The fields of a type or procedure and their current values: those that all targets share, or the schema's defaults.
 * Includes the managers of each target's fields. `unread`: a read of these that failed or has not answered yet.
 */
export const useFields = (what: What | undefined, targets: readonly string[]) => {
  const key = what?.kind === 'change' ? what.type : ''
  const type = useQuery({ ...resourceTypeQuery(key), enabled: key !== '' })
  const read = useQuery({ ...targetsQuery(targets), enabled: key !== '' && targets.length > 0 })
  if (key === '') {
    const fields = fieldsOf(what?.procedure?.parameters)
    const members = (what?.procedure?.parameters.properties ?? {}) as Record<string, { default?: unknown } | undefined>
    return {
      fields,
      now: Object.fromEntries(fields.map(({ name }) => [name, members[name]?.default])),
      mixed: {},
      owners: [],
      unread: undefined,
    }
  }
  const fields = type.data ? fieldsOf(type.data.desired_state_schema, lockedOf(type.data)) : []
  const rows = targets.length > 0 ? (read.data?.items ?? []) : []
  const unread = [type, read].find(({ isError }) => isError) ?? (type.isPending ? type : undefined)
  const states = rows.map((row) => row.desired_state ?? {})
  return { fields, ...sharedOf(fields, states), owners: rows.map(({ field_owners = {} }) => field_owners), unread }
}
