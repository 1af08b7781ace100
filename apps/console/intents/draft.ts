import type { Static } from 'typebox'
import type { ProcedureView } from '../../shared/contracts/operations/plans.ts'
import type { ResourceType } from '../api/types.ts'
import { objectIn } from '../forms/json.tsx'
import { type SchemaField, typedValue } from '../forms/schema.tsx'
import { ticketOf } from '../forms/ticket.tsx'
import { HERE, timeOf } from '../kit/format.ts'
import type { Chip } from '../values/conditions.tsx'
import { tChange } from '../words/change.ts'
import { tPlan } from '../words/plan.ts'

export type Procedure = Static<typeof ProcedureView>
export const KINDS = ['change', 'action', 'runbook'] as const
/** The thing to start: a change to a type, or a procedure by name; `fixed`: a part of an earlier intent, as it was. */
export type What = {
  kind: (typeof KINDS)[number] | 'graph'
  type: string
  procedure?: Procedure | undefined
  fixed?: object | undefined
}
/** Members of an earlier intent that the form does not show. */
export type Rest = {
  retry_of?: string
  labels?: object | undefined
  constraints?: Record<string, unknown>
  by?: string | undefined
}

export type Typed = {
  title: string
  /** Targets are resources picked by name; otherwise conditions select them. */
  picked: boolean
  ids: string
  /** The type of the targets, for a procedure that names none. */
  of: string
  chips: Chip[]
  when: string
  values: Record<string, string>
  more: string
  parameters: string
  reason: string
  ticket: string
  limits: Record<string, string>
  /** The person knowingly takes over fields of other managers. */
  take_over: boolean
}

/** Members that the type does not let people change. */
export const lockedOf = ({ field_classes: { immutable, read_only, sensitive } }: ResourceType): Set<string> =>
  new Set([...immutable, ...read_only, ...sensitive].map((pointer) => pointer.replace(/^\//, '').split('/')[0] ?? ''))

type Values = Readonly<Record<string, unknown>>

/** The value of each field that all targets share; for the others, how many values they have. */
export const sharedOf = (fields: readonly { name: string }[], states: readonly Values[]) => {
  const now: Record<string, unknown> = {}
  const mixed: Record<string, number> = {}
  for (const { name } of fields) {
    const values = new Map(states.map((state) => [JSON.stringify(state[name]), state[name]]))
    if (values.size === 1) now[name] = [...values.values()][0]
    else if (values.size > 1) mixed[name] = values.size
  }
  return { now, mixed }
}

const changedOf = (fields: readonly SchemaField[], values: Record<string, string>, now: Values) =>
  Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const text = values[field.name]
      if (text === undefined) return []
      const value = typedValue(field, text)
      return JSON.stringify(value) === JSON.stringify(now[field.name] ?? (field.kind === 'text' ? '' : null))
        ? []
        : [[field.name, value]]
    }),
  )

const limitsOf = ({
  window_id,
  not_before,
  deadline,
  max_parallel,
  risk_ceiling,
  ...waves
}: Record<string, string | undefined>) => ({
  ...(window_id && { window_id }),
  ...(not_before && { not_before: timeOf(not_before) }),
  ...(deadline && { deadline_s: Math.round(Number(deadline) * 3600) }),
  ...(max_parallel && { max_parallel: Number(max_parallel) }),
  ...(risk_ceiling && { risk_ceiling }),
  ...((waves.wave || waves.canary) && {
    batch: {
      ...(waves.wave && { size: Number(waves.wave) }),
      ...(waves.canary && { canary: Number(waves.canary) }),
      ...(waves.by && { by: waves.by }),
    },
  }),
  ...(waves.failure_budget && { failure_budget: Number(waves.failure_budget) }),
})

/** The targets as a request names them; a runbook for a whole plan has none. */
const targetsOf = ({ picked, ids, of, when }: Typed, { type, procedure }: What): object[] => {
  if (procedure?.scope === 'plan') return []
  if (picked)
    return ids
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((resource_id) => ({ resource_id }))
  const type_key = type || of
  return type_key === '' ? [] : [{ selector: { type_key, ...(when.trim() && { when: when.trim() }) } }]
}

/**
 * Machines that manage members of the desired state that a change sets: an importer or a control plane would set its
 * value again. A person or an operation sets a value only once.
 */
const managersOf = (owners: readonly Readonly<Record<string, string>>[], names: readonly string[]): string[] => {
  const of = (name: string) => {
    const path = `/desired_state/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return owners.flatMap((all) => [
      all[path] ?? all['/desired_state'] ?? all[''] ?? '',
      ...Object.entries(all).flatMap(([at, owner]) => (at.startsWith(`${path}/`) ? [owner] : [])),
    ])
  }
  return [...new Set(names.flatMap(of))].filter((owner) => owner !== '' && !/^(user|operation):/.test(owner))
}

/** The intent as typed so far; `faults` keep it from being sent, `unready` from being previewed. */
type Known = { fields: readonly SchemaField[]; now: Values; owners: readonly Readonly<Record<string, string>>[] }

export const intentOf = (typed: Typed, what: What, { fields, now, owners }: Known, rest: Rest = {}) => {
  const words = tPlan.intent
  const targets = targetsOf(typed, what)
  const values = { ...changedOf(fields, typed.values, now), ...(objectIn(typed.more) ?? {}) }
  const given = objectIn(typed.parameters) ?? {}
  const parameters = what.kind === 'change' ? given : values
  const has = Object.keys(parameters).length > 0 ? { parameters } : {}
  const { retry_of, labels, by } = rest
  const constraints = { ...rest.constraints, ...limitsOf({ ...typed.limits, by }) }
  const unready = [
    ...(targets.length === 0 && what.procedure?.scope !== 'plan' && !what.fixed
      ? [typed.picked ? words.missing.targets : words.missing.type]
      : []),
    ...(objectIn(typed.more) === undefined ? [`${words.more}: ${tChange.intervene.an_object}`] : []),
    ...(objectIn(typed.parameters) === undefined ? [`${words.parameters}: ${tChange.intervene.an_object}`] : []),
    ...(what.kind === 'change' && !what.fixed && Object.keys(values).length === 0 ? [words.missing.change] : []),
  ]
  const { not_before = '' } = typed.limits
  if (not_before !== '' && timeOf(not_before) === undefined)
    unready.push(`${words.limits.not_before(HERE)}: ${words.timing.missing.at}`)
  const managers = what.kind === 'change' ? managersOf(owners, Object.keys(values)) : []
  const faults = [
    ...unready,
    ...(managers.length > 0 && !typed.take_over ? [words.missing.take_over] : []),
    ...(typed.title.trim() === '' ? [words.missing.title] : []),
    ...(typed.reason.trim() === '' ? [words.missing.reason] : []),
  ]
  const { pack = '', key = '', match } = what.procedure ?? {}
  const parts = {
    change: { change: { op: 'update', desired_state_patch: values, ...has } },
    action: { action: { action_key: String(match?.action), ...has } },
    runbook: { runbook: { pack, procedure: key, ...has } },
    graph: {},
  }
  const body: Record<string, unknown> = {
    kind: what.kind,
    title: typed.title.trim() || '-',
    reason: typed.reason.trim() || '-',
    ...(targets.length > 0 && { targets }),
    ...(what.fixed ? { [what.kind]: what.fixed } : parts[what.kind]),
    ...(Object.keys(constraints).length > 0 && { constraints }),
    ...ticketOf(typed.ticket),
    ...(retry_of !== undefined && { retry_of }),
    ...(labels && { labels }),
  }
  return { unready, faults, body, managers }
}
