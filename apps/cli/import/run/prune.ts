import type { Context } from '../../command.ts'
import { confirm } from '../../terminal/ask.ts'
import { change, ID_NOTE, type Known, type Refusal, retireTogether } from './known.ts'

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

const review = ({ out }: Context, name: string, doomed: readonly Known[]): void =>
  out.review(doomed, (all) => [
    `prune    ${all.length} resources that ${name} made and no longer names:`,
    ...all
      .slice(0, MAX_SHOWN)
      .map(({ type_key, name, annotations }) => `  - retire   ${type_key}   ${name}   ${annotations[ID_NOTE]}`),
    ...(all.length > MAX_SHOWN ? [`  … ${all.length - MAX_SHOWN} more: -o json --dry-run lists all`] : []),
  ])

/** The states on the way to retired, for lifecycles that do not lead there directly. */
const STEPS = ['deprovisioning', 'failed']

type Left = { one: Known; refusal: Refusal }

/**
 * Retires in rounds, because a container can go only after its contents; resources that need one another go together.
 * Ends when a round makes no progress. A resource that changed since the review stays.
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
    const together = new Set<Known>()
    for (const ring of done.length + stepped.size > 0 ? [] : ringsOf(rest))
      if (await retireTogether(api, ring)) for (const one of ring) together.add(one)
    pruned.retired.push(...[...together].map(({ resource_id }) => resource_id))
    moved = done.length + stepped.size + together.size > 0
    left = rest.flatMap(({ one, refusal }) =>
      together.has(one) ? [] : [{ one: stepped.get(one) ?? one, reason: refusal.detail }],
    )
  }
  pruned.failed.push(...left.map(({ one: { resource_id }, reason = '' }) => ({ resource_id, reason })))
}

/** Groups of resources that only members of the same group still need. */
const ringsOf = (rest: readonly Left[]): Known[][] => {
  const blocked = new Map(rest.map(({ one, refusal: { blockers = [] } }) => [one, blockers]))
  const byId = new Map(rest.map(({ one }) => [one.resource_id, one]))
  const needing = (one: Known) => (blocked.get(one) ?? []).map(({ resource_id }) => byId.get(resource_id))
  const isFree = (one: Known) => needing(one).length > 0 && needing(one).every((other) => other && blocked.has(other))
  for (let size = -1; size !== blocked.size; ) {
    size = blocked.size
    for (const one of blocked.keys()) if (!isFree(one)) blocked.delete(one)
  }
  const groups = new Map([...blocked.keys()].map((one) => [one, new Set([one])]))
  for (const one of blocked.keys()) {
    for (const other of needing(one)) {
      const [group, more] = [groups.get(one), groups.get(other as Known)]
      if (!group || !more || group === more) continue
      for (const member of more) groups.set(member, group.add(member))
    }
  }
  return [...new Set(groups.values())].map((group) => [...group])
}

/** Moves resources that cannot end at once one step closer to their end. Returns those moved, at the new version. */
const step = async (api: Context['api'], rest: readonly Left[]) => {
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
