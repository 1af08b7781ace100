import type { ResourceView } from '../../../shared/contracts/catalog/resources.ts'
import type { ImportItem, ImportReply } from '../../../shared/contracts/imports/imports.ts'
import type { Context } from '../../command.ts'
import { CliError, EXIT } from '../../errors.ts'
import { confirm } from '../../terminal/ask.ts'
import { byExternalId, ID_NOTE, type Known, patchResource, SOURCE_LABEL } from './known.ts'

export type Pruned = {
  /** Retired, or to be retired in a dry run. */
  retired: string[]
  /** Not made by this source: adopted, or labeled by hand. */
  kept: string[]
  failed: { resource_id: string; reason: string }[]
}

const MAX_SHOWN = 50
const BATCH = 100

/**
 * Retires what this source made in earlier imports and no longer names. Shows the list first and asks, unless --yes is
 * given; a dry run only shows it.
 */
export const prune = async (
  context: Context,
  source: { kind: string; name: string },
  items: readonly ImportItem[],
  known: readonly Known[],
): Promise<Pruned> => {
  const there = new Set(items.map(({ external_id }) => external_id))
  const gone = [...byExternalId(known)].filter(([id]) => id !== '' && !there.has(id)).map(([, one]) => one)
  const made = new Set(await madeBy(context, source, gone))
  const doomed = gone.filter(({ resource_id }) => made.has(resource_id))
  const kept = known
    .filter((one) => !there.has(one.annotations[ID_NOTE] ?? '') && !made.has(one.resource_id))
    .map(({ resource_id }) => resource_id)
  const pruned: Pruned = { retired: [], kept, failed: [] }
  if (doomed.length === 0) return pruned
  review(context, source.name, doomed)
  if (context.dry_run) return { ...pruned, retired: doomed.map(({ resource_id }) => resource_id) }
  if (!context.yes) await confirm(`Retire these ${doomed.length} resources?`)
  await retireAll(context, doomed, pruned)
  return pruned
}

const review = ({ out }: Context, name: string, doomed: readonly Known[]): void => {
  out.note(`prune    ${doomed.length} resources that ${name} made and no longer names:`)
  for (const one of doomed.slice(0, MAX_SHOWN))
    out.note(`  - retire   ${one.type_key}   ${one.name}   ${one.annotations[ID_NOTE]}`)
  if (doomed.length > MAX_SHOWN) out.note(`  … ${doomed.length - MAX_SHOWN} more: -o json --dry-run lists all`)
}

/**
 * The resources that an import of this source created. Anyone can write labels, so the catalog's own record of imports
 * is asked for each id. The first version must carry the label: an adopted resource has it later only.
 */
const madeBy = async ({ api }: Context, source: { kind: string; name: string }, gone: readonly Known[]) => {
  const made: string[] = []
  for (let from = 0; from < gone.length; from += BATCH) {
    const part = gone.slice(from, from + BATCH)
    const items = part.map(({ annotations, type_key, name }) => ({
      external_id: annotations[ID_NOTE] ?? '',
      type_key,
      name,
    }))
    const { body } = await api.send<ImportReply>('POST', '/api/v1/resources:import?validate_only=true', {
      source,
      items,
    })
    for (const [index, { outcome, resource_id }] of body.results.entries()) {
      const one = part[index]
      // A conflict names the resource that is in the way: this source did not make it.
      if (one?.resource_id !== resource_id || !['unchanged', 'updated'].includes(outcome)) continue
      if (resource_id !== undefined && (await bornWithLabel(api, resource_id, source.name))) made.push(resource_id)
    }
  }
  return made
}

const bornWithLabel = async (api: Context['api'], resource_id: string, name: string): Promise<boolean> => {
  try {
    const path = `/api/v1/resources/${encodeURIComponent(resource_id)}?at_version=1`
    const first = await api.get<ResourceView>(path)
    return first.labels[SOURCE_LABEL] === name
  } catch (error) {
    // Past its retention: nobody can tell who made it.
    if (error instanceof CliError && error.exit !== EXIT.sign_in) return false
    throw error
  }
}

/** Retires again and again, since a container can go only after what is in it; ends when a round retires none. */
const retireAll = async ({ api }: Context, doomed: readonly Known[], pruned: Pruned): Promise<void> => {
  let left = [...doomed]
  while (left.length > 0) {
    const failed = new Map<Known, string>()
    for (const one of left) {
      const reason = await retire(api, one)
      if (reason === undefined) pruned.retired.push(one.resource_id)
      else failed.set(one, reason)
    }
    if (failed.size === left.length) {
      pruned.failed.push(...[...failed].map(([{ resource_id }, reason]) => ({ resource_id, reason })))
      return
    }
    left = [...failed.keys()]
  }
}

/** The states on the way to retired, for lifecycles that do not go there at once. */
const STEPS = ['retired', 'deprovisioning', 'failed']

/** Returns the refusal, undefined if the resource is retired. */
const retire = async (api: Context['api'], { resource_id }: Known): Promise<string | undefined> => {
  let reason = ''
  for (let step = 0; step < STEPS.length; ) {
    try {
      await patchResource(api, resource_id, { lifecycle_status: STEPS[step] })
      if (step === 0) return undefined
      step -= 1
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (step === 0) reason = error.detail
      if (!error.lines[0]?.includes('lifecycle_transition')) return error.detail
      step += 1
    }
  }
  return reason
}
