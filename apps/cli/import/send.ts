import { setTimeout as delay } from 'node:timers/promises'
import type { ImportItem, ImportReply, ImportResult } from '../../shared/contracts/imports/imports.ts'
import { digest } from '../../shared/data/digest.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { CliError, EXIT } from '../errors.ts'
import type { Api } from '../session/api.ts'
import { containersFirst } from './items.ts'

export type Plan = {
  api: Api
  source: { kind: string; name: string; file_digest: string }
  items: readonly ImportItem[]
  size: number
  adopt: boolean
  dry_run: boolean
  /**
   * Of --idempotency-key: every batch has its own key, derived from it and from the batch's items. So a run that broke
   * off resumes, however large its batches were.
   */
  key: string | undefined
  /** Edges of these types that an item no longer lists are removed. */
  complete?: readonly string[]
  onBatch: (batch: BatchDone) => void
}
/** One batch that was answered: how many items are done with it, of how many, and what became of its own. */
export type BatchDone = {
  batch: number | string
  done: number
  of: number
  outcomes: Record<string, number>
  results: ImportResult[]
}
type Batch = {
  items: ImportItem[] /** The first of them are here only so that the others find their containers. */
  context: number
}

const MAX_ITEMS = 200
const MAX_BYTES = 900_000
/** How often one batch is sent while the catalog says that it may be: some minutes. */
const TRIES = 30
const LONGEST_WAIT_MS = 5000

/** How many items go into the next batch: fewer after one that was too much for the catalog, then again more. */
type Pace = { size: number }

/**
 * Sends the items in batches, containers first; what names a target of a later batch is sent once more at the end. A
 * dry run is not stored, so each of its batches brings along the containers that it needs.
 */
export const sendItems = async (plan: Plan): Promise<ImportResult[]> => {
  const sorted = containersFirst(plan.items)
  const results = new Map<string, ImportResult>()
  const at = new Map<string, number>()
  const pace = { size: plan.size }
  let done = 0
  for await (const { number, batch, answers } of answered(sorted, plan, pace)) {
    for (const item of batch.items.slice(batch.context)) at.set(item.external_id, number)
    for (const answer of answers) results.set(answer.external_id, answer)
    done += answers.length
    plan.onBatch({ batch: number, done, of: sorted.length, outcomes: outcomesOf(answers), results: answers })
  }
  if (plan.dry_run) forgetOthers(results, sorted)
  else {
    const late = sorted.filter(({ external_id, relationships = [] }) =>
      relationships.some(({ target_external_id: to }) => (at.get(to ?? '') ?? 0) > (at.get(external_id) ?? 0)),
    )
    for await (const { number, answers } of answered(late, plan, pace, 'late-')) {
      plan.onBatch({ batch: `late-${number}`, done, of: done, outcomes: outcomesOf(answers), results: answers })
      for (const answer of answers) results.set(answer.external_id, joined(results.get(answer.external_id), answer))
    }
  }
  return sorted.flatMap((item) => results.get(item.external_id) ?? [])
}

/** How many results there are of each outcome. */
export const outcomesOf = (results: readonly ImportResult[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(results, ({ outcome }) => outcome)].map(([outcome, all]) => [outcome, all.length]))

type Answered = { number: number; batch: Batch; answers: ImportResult[] }

/** All items in batches, one after the other, with the answers for a batch's own items. */
async function* answered(
  sorted: readonly ImportItem[],
  plan: Plan,
  pace: Pace,
  prefix = '',
): AsyncGenerator<Answered, void, undefined> {
  const byId = new Map(sorted.map((item) => [item.external_id, item]))
  for (let from = 0, number = 0; from < sorted.length; ) {
    const batch = batchFrom(sorted, from, byId, plan.dry_run, pace.size)
    const answers = await send(plan, batch, prefix, pace)
    if (!answers) continue
    yield { number, batch, answers }
    from += answers.length
    number += 1
  }
}

/**
 * Sends one batch until it is answered, for its first items at least: a repeat has the same key, so no item is done
 * twice. Returns undefined if the same would take as long again, since a dry run is not kept: then less is sent
 * at once.
 */
const send = async (
  { api, source, adopt, dry_run, key, size, complete = [] }: Plan,
  { items, context }: Batch,
  pass: string,
  pace: Pace,
): Promise<ImportResult[] | undefined> => {
  const path = `/api/v1/resources:import${dry_run ? '?validate_only=true' : ''}`
  const headers = { 'idempotency-key': key === undefined ? uuidv7() : digest([key, source, pass, adopt, items]) }
  const own = items.length - context
  const options = { adopt, ...(complete.length > 0 && { complete_relationship_types: complete }) }
  for (let tries = 1; ; tries++) {
    try {
      const { body } = await api.send<ImportReply>('POST', path, { source, items, options }, headers)
      const answers = body.results.slice(context).filter(({ outcome }) => outcome !== 'deferred')
      if (answers.length === 0) throw tooSlow()
      if (answers.length < own) pace.size = answers.length
      else if (tries === 1) pace.size = Math.min(size, pace.size * 2)
      return answers
    } catch (error) {
      const wait_ms = error instanceof CliError ? error.retry_after_ms : undefined
      if (wait_ms === undefined || tries === TRIES) throw error
      if (tries === 1) pace.size = Math.ceil(own / 2)
      await delay(Math.min(wait_ms, LONGEST_WAIT_MS))
      if (dry_run && own > 1) return undefined
    }
  }
}

/** A dry run's containers have taken all the time of the request. */
const tooSlow = () => {
  const error = new CliError(EXIT.error, 'failed   The catalog is too busy to look at a single item in time.')
  error.retry_after_ms = LONGEST_WAIT_MS
  return error
}

/** The items of one batch; those of a dry run bring along the containers that stand before them. */
const batchFrom = (
  sorted: readonly ImportItem[],
  from: number,
  byId: ReadonlyMap<string, ImportItem>,
  dry_run: boolean,
  size: number,
): Batch => {
  const own: ImportItem[] = []
  const context = new Map<string, ImportItem>()
  let bytes = 0
  for (const item of sorted.slice(from, from + size)) {
    const inside = new Set(own.map(({ external_id }) => external_id))
    const above = (dry_run ? containersOf(item, byId) : []).filter(
      ({ external_id }) => !inside.has(external_id) && !context.has(external_id),
    )
    bytes += Buffer.byteLength(JSON.stringify([item, ...above]))
    const count = own.length + 1 + context.size + above.length
    if (own.length > 0 && (count > MAX_ITEMS || bytes > MAX_BYTES)) break
    for (const one of above) context.set(one.external_id, one)
    own.push(item)
  }
  return { items: [...context.values(), ...own], context: context.size }
}

/** The containers of an item within the file, the outermost first. */
const containersOf = (item: ImportItem, byId: ReadonlyMap<string, ImportItem>): ImportItem[] => {
  const above: ImportItem[] = []
  for (let at = byId.get(item.parent_external_id ?? ''); at; at = byId.get(at.parent_external_id ?? ''))
    above.unshift(at)
  return above
}

/** In a dry run a target of another batch is not there; it will be. */
const forgetOthers = (results: Map<string, ImportResult>, items: readonly ImportItem[]): void => {
  for (const { external_id, relationships = [] } of items) {
    const result = results.get(external_id)
    const known = relationships.every(({ target_external_id: id }) => id === undefined || results.has(id))
    if (result?.problem?.code === 'target_not_found' && result.outcome !== 'refused' && known) {
      const { problem: _, ...rest } = result
      results.set(external_id, rest)
    }
  }
}

const joined = (first: ImportResult | undefined, second: ImportResult): ImportResult => {
  if (!first || second.outcome === 'refused' || second.outcome === 'conflict') return second
  const outcome = first.outcome === 'unchanged' ? second.outcome : first.outcome
  return { ...second, outcome, diff: [...first.diff, ...second.diff] }
}
