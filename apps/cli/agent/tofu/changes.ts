import type { PreviewField } from '../../../shared/contracts/client/preview.ts'
import { maskIn } from '../../../shared/data/mask.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { pictureOf } from '../tools/picture.ts'

/** The changes of a saved plan without its secrets: only listed members, and no values marked as sensitive. */
type ToolChange = {
  actions: string[]
  before?: unknown
  after?: unknown
  after_unknown?: unknown
  before_sensitive?: unknown
  after_sensitive?: unknown
}
type ToolResource = { address: string; change: ToolChange; action_reason?: string }
type ToolPlan = {
  resource_changes?: ToolResource[]
  resource_drift?: ToolResource[]
  output_changes?: Record<string, ToolChange>
}

export const changesOf = (plan: ToolPlan, mask: (text: string) => string) => {
  const resources = (plan.resource_changes ?? []).map(({ address, change }) => [address, change] as const)
  const outputs = Object.entries(plan.output_changes ?? {}).map(([name, change]) => [`output.${name}`, change] as const)
  const all = [...resources, ...outputs].flatMap(([id, change]) => {
    const action = actionOf(change.actions)
    return action === undefined ? [] : [{ id: mask(id), action, fields: fieldsOf(change, mask) }]
  })
  return { ...pictureOf(all), drift: (plan.resource_drift ?? []).length }
}

const actionOf = (actions: string[]): string | undefined =>
  actions.length > 1 ? 'replace' : actions[0] === 'no-op' ? undefined : actions[0]

const fieldsOf = (change: ToolChange, mask: (text: string) => string): PreviewField[] => {
  const fields: PreviewField[] = []
  const walk = (path: string, before: unknown, after: unknown, unknown: unknown, secret: unknown[]) => {
    if (secret.includes(true)) {
      if (unknown === true || differs(before, after)) fields.push({ path, sensitive: true })
      return
    }
    if (unknown === true) return void fields.push({ path, ...valued('before', before, mask), unknown: true })
    const parts = [before, after, unknown].filter((part) => isObject(part) || Array.isArray(part)) as object[]
    if (
      parts.length > 0 &&
      [before, after].every((part) => part === undefined || part === null || typeof part === 'object')
    ) {
      for (const key of new Set(parts.flatMap((part) => Object.keys(part))))
        walk(
          `${path}/${key}`,
          at(before, key),
          at(after, key),
          at(unknown, key),
          secret.map((part) => at(part, key)),
        )
      return
    }
    if (differs(before, after))
      fields.push({ path, ...valued('before', before, mask), ...valued('after', after, mask) })
  }
  walk('', change.before, change.after, change.after_unknown, [change.before_sensitive, change.after_sensitive])
  return fields.sort((a, b) => (a.path < b.path ? -1 : 1))
}

const differs = (a: unknown, b: unknown) => JSON.stringify(a ?? null) !== JSON.stringify(b ?? null)

const at = (value: unknown, key: string): unknown =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined

const valued = (name: 'before' | 'after', value: unknown, mask: (text: string) => string) =>
  value === undefined || value === null ? {} : { [name]: maskIn(value, mask) }
