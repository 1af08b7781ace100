import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { Static } from 'typebox'
import type { Constraints, IntentBody, IntentView } from '../../shared/contracts/operations/intents.ts'
import type { Rollback } from '../../shared/contracts/operations/operations.ts'
import { serverNow } from '../api/live.ts'
import { fieldsOf, type SchemaField } from '../forms/schema.tsx'
import { intentQuery, proceduresQuery } from '../queries/changes.ts'
import { operationQuery, rollbackQuery } from '../queries/operations.ts'
import { resourceTypeQuery } from '../queries/resources.ts'
import { lockedOf, type Procedure, type Rest, type Typed, type What } from './draft.ts'

type Asked = Pick<IntentView, 'kind' | 'title' | 'reason' | 'ticket' | 'targets_resolved'> & { request: unknown }
/**
 * What an earlier operation asked for, as the form shows it; `rest` is for the server alone, `before` the old targets.
 * `back`: one of the intents that roll it back.
 */
export type Again = {
  what: What
  typed: Partial<Typed>
  rest: Rest
  before: string[]
  as_then: boolean
  back?: { at: number; of: number; next: string }
}

const requestOf = ({ request }: Asked) => request as Partial<IntentBody>
const selectorsOf = (asked: Asked) =>
  (requestOf(asked).targets ?? []).flatMap((target) => ('selector' in target ? [target.selector] : []))

/** What to start again; `fixed`: a part that the form cannot show is sent as it was. */
export const whatOf = (asked: Asked, procedures: readonly Procedure[]): What => {
  const { change, action, runbook, ...request } = requestOf(asked)
  const kind = asked.kind as What['kind']
  const type = selectorsOf(asked)[0]?.type_key ?? asked.targets_resolved[0]?.type_key ?? ''
  if (change?.op === 'update') return { kind, type }
  const procedure = procedures.find((one) =>
    action
      ? one.kind === 'action' && one.match.action === action.action_key && one.match.resource_type === type
      : one.kind === 'runbook' && one.pack === runbook?.pack && one.key === runbook.procedure,
  )
  if (procedure && runbook?.version === undefined) return { kind, type, procedure }
  return { kind, type, fixed: change ?? action ?? runbook ?? request.graph }
}

/** The form as it was filled for an earlier intent. Targets that it cannot describe are those that were resolved then. */
export const againOf = (
  asked: Asked,
  operation_id: string,
  what: What,
  fields: readonly SchemaField[],
  now: number,
): Again => {
  const { targets = [], change, action, runbook, labels, constraints = {} } = requestOf(asked)
  const [selector, ...more] = selectorsOf(asked)
  const described = selector !== undefined && targets.length === 1 && selector.limit === undefined
  const named = targets.flatMap((target) => ('resource_id' in target ? [target.resource_id] : []))
  const before = asked.targets_resolved.map(({ resource_id }) => resource_id)
  const given: Record<string, unknown> = change?.desired_state_patch ?? (action ?? runbook)?.parameters ?? {}
  const shown = fields.filter(({ name }) => SCALARS.has(typeof given[name])).map(({ name }) => name)
  const { on_deadline, pause_on_failure, on_drift, batch } = constraints
  return {
    what,
    typed: {
      ...{ title: asked.title, reason: asked.reason, ticket: asked.ticket ?? '' },
      picked: !described,
      ids: described ? '' : (selector ? before : named).join(' '),
      of: selector?.type_key ?? '',
      when: (described && selector.when) || '',
      values: Object.fromEntries(shown.map((name) => [name, String(given[name])])),
      more: textOf(Object.fromEntries(Object.entries(given).filter(([name]) => !shown.includes(name)))),
      parameters: textOf(change?.parameters ?? {}),
      limits: limitsTyped(constraints, now),
    },
    rest: {
      ...{ retry_of: operation_id, labels, by: batch?.by },
      constraints: definedOf({ on_deadline, pause_on_failure, on_drift }),
    },
    before,
    as_then: !described && (selector !== undefined || more.length > 0),
  }
}
const SCALARS = new Set(['string', 'number', 'boolean'])
const textOf = (members: object): string => (Object.keys(members).length > 0 ? JSON.stringify(members, null, 2) : '')

/** A start that is past is no limit. */
const limitsTyped = (
  { window_id, not_before, deadline_s, max_parallel, risk_ceiling, failure_budget, batch }: Static<typeof Constraints>,
  now: number,
): Record<string, string> => {
  const start = not_before === undefined ? now : Date.parse(not_before)
  const local = new Date(start - new Date(start).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
  const limits = definedOf({
    ...{ window_id, max_parallel, risk_ceiling, failure_budget, wave: batch?.size, canary: batch?.canary },
    not_before: start > now ? local : undefined,
    deadline: deadline_s === undefined ? undefined : deadline_s / 3600,
  })
  return Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, String(value)]))
}
const definedOf = (members: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

type Part = Rollback['intents'][number]
/** The place of the part that brings this resource back. Parts that have run are no longer in the list: then the first. */
export const partOf = (parts: readonly Pick<Part, 'targets_resolved'>[], resource_id: string): number => {
  const at = parts.findIndex(({ targets_resolved }) => targets_resolved.some((one) => one.resource_id === resource_id))
  return Math.max(0, at)
}

/** Reads what to run again, or how to roll back. `unread`: a read that failed or has not answered yet. */
export const useAgain = (operation_id: string, back?: string): { again?: Again; unread?: UseQueryResult } => {
  const operation = useQuery({ ...operationQuery(operation_id), enabled: operation_id !== '' })
  const intent_id = operation.data?.intent_id ?? ''
  const intent = useQuery({ ...intentQuery(intent_id), enabled: intent_id !== '' && back === undefined })
  const rollback = useQuery({ ...rollbackQuery(operation_id), enabled: back !== undefined })
  const parts = rollback.data?.intents ?? []
  const at = partOf(parts, back ?? '')
  const asked = back === undefined ? intent.data : wayBackOf(parts[at])
  const procedures = useQuery(proceduresQuery())
  const what = asked && procedures.data && whatOf(asked, procedures.data.items)
  const key = what?.kind === 'change' && what.fixed === undefined ? what.type : ''
  const type = useQuery({ ...resourceTypeQuery(key), enabled: key !== '' })
  if (operation_id === '') return {}
  const reads = [operation, back === undefined ? intent : rollback, ...(key === '' ? [] : [type])]
  const unread = reads.find(({ data }) => data === undefined)
  if (unread || !what || !asked) return { unread: unread ?? procedures }
  const fields = type.data
    ? fieldsOf(type.data.desired_state_schema, lockedOf(type.data))
    : fieldsOf(what.procedure?.parameters)
  const again = againOf(asked, operation_id, what, fields, serverNow())
  if (back === undefined) return { again }
  const next = parts[(at + 1) % parts.length]?.targets_resolved[0]?.resource_id ?? ''
  return { again: { ...again, back: { at, of: parts.length, next } } }
}

const wayBackOf = (one: Part | undefined): Asked | undefined =>
  one && { ...(one.request as Omit<Asked, 'request' | 'targets_resolved'>), ...one }
