import type { FieldChange } from '../../shared/contracts/operations/graph.ts'
import { canonicalJson } from '../../shared/data/digest.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { pick } from '../../shared/data/pick.ts'
import { isObject, pointerOf, readPointer, tokensOf } from '../../shared/data/pointer.ts'
import { byText } from './graph.ts'
import type { PlannedIntent, ResourceType, Target, TargetDiff } from './types.ts'

export type TargetChange = { diff: TargetDiff; after: Record<string, unknown> }

/** An intent's changes to a target, leaf by leaf, by the schema of its type. Those of an action are not known ahead. */
export const diffTarget = (target: Target, type: ResourceType | undefined, intent: PlannedIntent): TargetChange => {
  const { desired_state } = target
  const about = { ...pick(target, 'resource_id', 'name', 'type_key'), region_id: target.scope.region_id }
  if (intent.kind !== 'change' || !intent.change)
    return { diff: { ...about, change: 'unknown', fields: [] }, after: desired_state }
  const { op, desired_state_patch = {} } = intent.change
  const ended = type?.lifecycle.terminal.includes(target.lifecycle_status) ?? false
  if (op === 'delete') {
    const fields = ended ? [] : leaves(desired_state, {}, type)
    return { diff: { ...about, change: ended ? 'no_change' : 'delete', fields }, after: {} }
  }
  if (op === 'create') {
    const planned = target.lifecycle_status === 'planned'
    const fields = planned ? leaves({}, desired_state, type) : []
    return { diff: { ...about, change: planned ? 'create' : 'no_change', fields }, after: desired_state }
  }
  const after = mergePatch(desired_state, desired_state_patch) as Record<string, unknown>
  const fields = leaves(desired_state, after, type)
  return { diff: { ...about, change: changeOf(fields, type), fields }, after }
}

const changeOf = (fields: FieldChange[], type: ResourceType | undefined): TargetDiff['change'] => {
  const real = fields.filter((field) => !field.noise)
  if (real.length === 0) return 'no_change'
  if (!type) return 'unknown'
  const moved = real.some((field) => field.before !== null && isUnder(field.path, type.field_classes.immutable))
  return moved ? 'replace' : 'update'
}

/** Whether a pointer equals one of the given ones or is below one. */
export const isUnder = (path: string, pointers: readonly string[]): boolean =>
  pointers.some((pointer) => path === pointer || path.startsWith(`${pointer}/`))

const leaves = (before: unknown, after: unknown, type: ResourceType | undefined): FieldChange[] => {
  const fields: FieldChange[] = []
  walk(before, after, [], (tokens, was, is) => {
    const path = pointerOf(...tokens)
    const noise = isUnder(path, type?.field_classes.read_only ?? []) || isDefault(path, was, is, type)
    const sensitive = isUnder(path, type?.field_classes.sensitive ?? [])
    fields.push({
      path,
      before: was === undefined ? null : was,
      after: is === undefined ? null : is,
      ...(sensitive && { sensitive }),
      ...(noise && { noise }),
    })
  })
  return fields.sort((a, b) => byText(a.path, b.path))
}

const walk = (
  before: unknown,
  after: unknown,
  tokens: string[],
  found: (tokens: string[], before: unknown, after: unknown) => void,
): void => {
  if (isObject(before) || isObject(after)) {
    const was = isObject(before) ? before : {}
    const is = isObject(after) ? after : {}
    const keys = new Set([...Object.keys(was), ...Object.keys(is)])
    const mixed = (before !== undefined && !isObject(before)) || (after !== undefined && !isObject(after))
    if (keys.size > 0 && !mixed) {
      for (const key of keys) walk(member(was, key), member(is, key), [...tokens, key], found)
      return
    }
  }
  if (before === undefined && after === undefined) return
  if (before !== undefined && after !== undefined && canonicalJson(before) === canonicalJson(after)) return
  found(tokens, before, after)
}

const member = (members: Record<string, unknown>, key: string) =>
  Object.hasOwn(members, key) ? members[key] : undefined

/** Whether a value only spells out the schema's default. */
const isDefault = (path: string, before: unknown, after: unknown, type: ResourceType | undefined): boolean => {
  if (!type || (before !== undefined && after !== undefined)) return false
  const pointer = tokensOf(path)
    .map((token) => `/properties${pointerOf(token)}`)
    .join('')
  const assumed = readPointer(type.desired_state_schema, `${pointer}/default`)
  return assumed !== undefined && canonicalJson(assumed) === canonicalJson(before ?? after)
}
