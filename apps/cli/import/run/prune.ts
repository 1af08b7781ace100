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
export const prune = async (
  context: Context,
  source: string,
  gone: readonly Known[],
  pruned: Pruned,
): Promise<void> => {
  const isMade = ({ field_owners = {} }: Known) => field_owners[''] === `import:${source}`
  const doomed = gone.filter(isMade)
  pruned.kept.push(...gone.filter((one) => !isMade(one)).map(({ resource_id }) => resource_id))
  if (doomed.length === 0) return
  review(context, source, doomed)
  if (context.dry_run) pruned.retired.push(...doomed.map(({ resource_id }) => resource_id))
  else {
    if (!context.yes)
      await confirm(`Retire these ${doomed.length} resources?`, 'The import is done; it retired no resource.')
    await retireAll(context, doomed, pruned)
  }
}

const review = ({ out }: Context, name: string, doomed: readonly Known[]): void =>
  out.review(doomed, (all) => [
    `prune    ${all.length} resources that ${name} made and no longer names:`,
    ...all
      .slice(0, MAX_SHOWN)
      .map(({ type_key, name, annotations }) => `  - retire   ${type_key}   ${name}   ${annotations[ID_NOTE]}`),
    ...(all.length > MAX_SHOWN ? [`  … ${all.length - MAX_SHOWN} more: -o json --dry-run lists all`] : []),
  ])

/** The states that lead to retired, for lifecycles without a direct way. */
const WAYS = [['deprovisioning'], ['failed', 'deprovisioning']]
/** With its way, each is up to three items of a bulk request of at most 1,000. */
const MOST = 300

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
    const reasons = new Map(rest.map(({ one, refusal }) => [one, refusal]))
    for (const way of WAYS) {
      const far = [...reasons].flatMap(([one, { code }]) => (code === 'lifecycle_transition' ? [one] : []))
      for (let from = 0; from < far.length; from += MOST)
        await retireBy(api, far.slice(from, from + MOST), way, reasons)
    }
    if (done.length === 0 && reasons.size === rest.length)
      for (const ring of ringsOf(rest))
        if ((await retireTogether(api, ring)) === undefined) for (const one of ring) reasons.delete(one)
    pruned.retired.push(...rest.flatMap(({ one }) => (reasons.has(one) ? [] : [one.resource_id])))
    moved = reasons.size < left.length
    left = [...reasons].map(([one, { detail }]) => ({ one, reason: detail }))
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

/** Retires as many of these as can go, by these states, and takes them out of `reasons`. The others stay as they are. */
const retireBy = async (
  api: Context['api'],
  all: readonly Known[],
  way: readonly string[],
  reasons: Map<Known, Refusal>,
): Promise<void> => {
  const [first] = all
  if (!first) return
  const reason = await retireTogether(api, all, way)
  if (reason === undefined) for (const one of all) reasons.delete(one)
  else if (all.length === 1) reasons.set(first, reason)
  else {
    const half = Math.ceil(all.length / 2)
    await retireBy(api, all.slice(0, half), way, reasons)
    await retireBy(api, all.slice(half), way, reasons)
  }
}
