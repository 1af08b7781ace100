import type { Context } from '../../command.ts'
import { confirm } from '../../terminal/ask.ts'
import { change, ID_NOTE, type Known, type Refusal } from './known.ts'

export type Pruned = {
  /** Retired, or to be retired in a dry run. */
  retired: string[]
  /** Not made by this source: adopted, or labeled by hand. */
  kept: string[]
  failed: { resource_id: string; reason: string }[]
}

const MAX_SHOWN = 50

/**
 * Retires the resources that this source made in earlier imports and no longer names. Anyone can write labels, so the
 * catalog is asked who created each. Shows the list first and asks, unless --yes is given; a dry run only shows it.
 */
export const prune = async (context: Context, source: string, gone: readonly Known[]): Promise<Pruned> => {
  const isMade = ({ field_owners = {} }: Known) => field_owners[''] === `import:${source}`
  const doomed = gone.filter(isMade)
  const kept = gone.filter((one) => !isMade(one)).map(({ resource_id }) => resource_id)
  const pruned: Pruned = { retired: [], kept, failed: [] }
  if (doomed.length === 0) return pruned
  review(context, source, doomed)
  if (context.dry_run) return { ...pruned, retired: doomed.map(({ resource_id }) => resource_id) }
  if (!context.yes)
    await confirm(`Retire these ${doomed.length} resources?`, 'The import is done; it retired no resource.')
  await retireAll(context, doomed, pruned)
  return pruned
}

const review = ({ out }: Context, name: string, doomed: readonly Known[]): void => {
  out.note(`prune    ${doomed.length} resources that ${name} made and no longer names:`)
  for (const one of doomed.slice(0, MAX_SHOWN))
    out.note(`  - retire   ${one.type_key}   ${one.name}   ${one.annotations[ID_NOTE]}`)
  if (doomed.length > MAX_SHOWN) out.note(`  … ${doomed.length - MAX_SHOWN} more: -o json --dry-run lists all`)
}

/** The states on the way to retired, for lifecycles that do not lead there directly. */
const STEPS = ['deprovisioning', 'failed']

/**
 * Retires in rounds, because a container can go only after its contents; ends when a round makes no progress. A
 * resource that changed since the review stays.
 */
const retireAll = async ({ api }: Context, doomed: readonly Known[], pruned: Pruned): Promise<void> => {
  let left: { one: Known; reason?: string }[] = doomed.map((one) => ({ one }))
  for (let moved = true; moved && left.length > 0; ) {
    const refusals = await change(
      api,
      left.map(({ one }) => ({ one, op: 'retire' })),
    )
    const done = left.filter((_, index) => !refusals[index])
    pruned.retired.push(...done.map(({ one }) => one.resource_id))
    const rest = left.flatMap(({ one }, index) => {
      const refusal = refusals[index]
      return refusal ? [{ one, refusal }] : []
    })
    const stepped = await step(api, rest)
    moved = done.length + stepped.size > 0
    left = rest.map(({ one, refusal }) => ({ one: stepped.get(one) ?? one, reason: refusal.detail }))
  }
  pruned.failed.push(...left.map(({ one: { resource_id }, reason = '' }) => ({ resource_id, reason })))
}

/** Moves resources that cannot end at once one step closer to their end. Returns those moved, at the new version. */
const step = async (api: Context['api'], rest: readonly { one: Known; refusal: Refusal }[]) => {
  const stepped = new Map<Known, Known>()
  for (const lifecycle_status of STEPS) {
    const on = rest.filter(({ one, refusal }) => refusal.code === 'lifecycle_transition' && !stepped.has(one))
    const refusals = await change(
      api,
      on.map(({ one }) => ({ one, op: 'update', patch: { lifecycle_status } })),
    )
    for (const [index, { one }] of on.entries())
      if (!refusals[index]) stepped.set(one, { ...one, version: one.version + 1 })
  }
  return stepped
}
