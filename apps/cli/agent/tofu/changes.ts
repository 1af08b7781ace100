import type { PreviewField } from '../../../shared/contracts/client/preview.ts'
import { maskIn } from '../../../shared/data/mask.ts'
import { isObject, objectIn } from '../../../shared/data/pointer.ts'
import { parseDigits } from '../../../shared/run/exact.ts'
import { pictureOf } from '../tools/picture.ts'
import { Ended, failed } from '../tools/types.ts'

const NO_JSON = 'The tool did not answer with one JSON object of at most 64 MiB'

/** Numbers with more digits than double precision has are read rounded, so two of them may look the same. */
const UNSHOWN = 'the difference cannot be shown, as with the last digits of a very long number'

/** The changes of a saved plan without its secrets: only listed members, and no values marked as sensitive. */
type ToolChange = {
  actions: string[]
  before?: unknown
  after?: unknown
  after_unknown?: unknown
  before_sensitive?: unknown
  after_sensitive?: unknown
  importing?: { id?: unknown; identity?: unknown }
}
type ToolResource = { address: string; previous_address?: string; change: ToolChange; action_reason?: string }
type ToolPlan = {
  terraform_version?: string
  resource_changes?: ToolResource[]
  resource_drift?: ToolResource[]
  output_changes?: Record<string, ToolChange>
}

/** Reads the JSON of a plan. A wrapper around the tool may print other lines, and a plan may be longer than is read. */
export const planIn = (shown: string): ToolPlan => {
  const plan = objectIn(shown, parseDigits)
  if (plan) return plan as ToolPlan
  const message = `${NO_JSON} (${Buffer.byteLength(shown)} bytes). No change was made.`
  throw new Ended(failed('tool_failed', message, false))
}

export const changesOf = (plan: ToolPlan, mask: (text: string) => string) => {
  const outputs = Object.entries(plan.output_changes ?? {}).map(([name, change]) => ({
    address: `output.${name}`,
    change,
  }))
  const all = [...(plan.resource_changes ?? []), ...outputs].flatMap((resource: ToolResource) => {
    const { address, previous_address: from, change, action_reason } = resource
    const { importing } = change
    // The tool calls both "no-op", because they change only the state.
    const action = actionOf(change.actions) ?? (from !== undefined ? 'move' : importing ? 'import' : undefined)
    const fields = fieldsOf(change, mask)
    const notes = [
      ...(action === 'update' && fields.length === 0 ? [UNSHOWN] : []),
      ...(action_reason === 'replace_by_request' ? ['replaced on request'] : []),
      ...(from === undefined ? [] : [`moved from ${from}`]),
      ...(importing ? [`imports ${importing.id ?? JSON.stringify(importing.identity)}`] : []),
    ]
    const note = notes.length > 0 ? { note: mask(notes.join(', ')) } : {}
    return action === undefined ? [] : [{ id: mask(address), action, ...note, fields }]
  })
  return { ...pictureOf(all), drift: driftIn(plan).length }
}

/** The first of the addresses that the plan has no instance of; the tool only warns of it, if at all. */
export const strangerIn = ({ resource_changes = [] }: ToolPlan, addresses: readonly string[]): string | undefined =>
  addresses.find((given) => !resource_changes.some(({ address }) => isWithin(address, given)))

const isWithin = (address: string, whole: string): boolean =>
  address.startsWith(whole) && ['', '.', '['].includes(address.charAt(whole.length))

/** The real objects that differ from the state; an address that a module has moved is no difference. */
export const driftIn = ({ resource_drift = [] }: ToolPlan): ToolResource[] =>
  resource_drift.flatMap(({ previous_address: _, ...one }) => (actionOf(one.change.actions) === undefined ? [] : [one]))

const actionOf = (actions: string[]): string | undefined =>
  actions.length > 1 ? 'replace' : actions[0] === 'no-op' ? undefined : actions[0]

const fieldsOf = (change: ToolChange, mask: (text: string) => string): PreviewField[] => {
  const fields: PreviewField[] = []
  const walk = (path: string, before: unknown, after: unknown, unknown: unknown, secret: unknown[]) => {
    if (secret.includes(true)) {
      if (unknown === true || differs(before, after)) fields.push({ path, sensitive: true })
      return
    }
    // A value is shown whole below. If a part of it is secret, the other side has no such part to compare it with.
    const hidden = secret.some(isMarked) && { sensitive: true }
    if (unknown === true)
      return void fields.push({ path, ...(hidden || valued('before', before, mask)), unknown: true })
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
      fields.push({ path, ...(hidden || { ...valued('before', before, mask), ...valued('after', after, mask) }) })
  }
  walk('', change.before, change.after, change.after_unknown, [change.before_sensitive, change.after_sensitive])
  return fields.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Whether the tool marks a part of the value as sensitive, however deep. */
const isMarked = (marks: unknown): boolean =>
  marks === true || (typeof marks === 'object' && marks !== null && Object.values(marks).some(isMarked))

const differs = (a: unknown, b: unknown) => JSON.stringify(a ?? null) !== JSON.stringify(b ?? null)

const at = (value: unknown, key: string): unknown =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined

const valued = (name: 'before' | 'after', value: unknown, mask: (text: string) => string) =>
  value === undefined || value === null ? {} : { [name]: maskIn(value, mask) }
