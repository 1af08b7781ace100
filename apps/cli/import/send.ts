import type { ImportItem, ImportReply, ImportResult } from '../../shared/contracts/catalog/imports.ts'
import { digest } from '../../shared/digest.ts'
import type { Api } from '../api.ts'
import { containersFirst } from './items.ts'

export type Plan = {
  api: Api
  source: { kind: string; name: string; file_digest: string }
  items: readonly ImportItem[]
  size: number
  adopt: boolean
  dry_run: boolean
  /** Of --idempotency-key: every batch has a key of its own that follows from it, so a run that broke off goes on. */
  key: string | undefined
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

/**
 * Sends the items in batches, containers first; what names a target of a later batch is sent once more at the end. A
 * dry run stores nothing, so each of its batches brings along the containers that it needs.
 */
export const sendItems = async (plan: Plan): Promise<ImportResult[]> => {
  const sorted = containersFirst(plan.items)
  const results = new Map<string, ImportResult>()
  const at = new Map<string, number>()
  let done = 0
  for (const [number, batch] of batchesOf(sorted, plan).entries()) {
    const own = batch.items.slice(batch.context)
    for (const item of own) at.set(item.external_id, number)
    const answers = (await send(plan, batch, number)).results.slice(batch.context)
    for (const answer of answers) results.set(answer.external_id, answer)
    done += own.length
    plan.onBatch({ batch: number, done, of: sorted.length, outcomes: outcomesOf(answers), results: answers })
  }
  if (plan.dry_run) forgetOthers(results, sorted)
  else {
    const late = sorted.filter(({ external_id, relationships = [] }) =>
      relationships.some(({ target_external_id: to }) => (at.get(to ?? '') ?? 0) > (at.get(external_id) ?? 0)),
    )
    for (const [number, batch] of batchesOf(late, plan).entries()) {
      const { results: answers } = await send(plan, batch, `late-${number}`)
      plan.onBatch({ batch: `late-${number}`, done, of: done, outcomes: outcomesOf(answers), results: answers })
      for (const answer of answers) results.set(answer.external_id, joined(results.get(answer.external_id), answer))
    }
  }
  return sorted.flatMap((item) => results.get(item.external_id) ?? [])
}

/** How many results there are of each outcome. */
export const outcomesOf = (results: readonly ImportResult[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(results, ({ outcome }) => outcome)].map(([outcome, all]) => [outcome, all.length]))

const send = async (
  { api, source, adopt, dry_run, key }: Plan,
  { items }: Batch,
  number: number | string,
): Promise<ImportReply> => {
  const path = `/api/v1/resources:import${dry_run ? '?validate_only=true' : ''}`
  const headers = key === undefined ? {} : { 'idempotency-key': digest([key, source, number]) }
  return (await api.send<ImportReply>('POST', path, { source, items, options: { adopt } }, headers)).body
}

const batchesOf = (sorted: readonly ImportItem[], { size, dry_run }: Plan): Batch[] => {
  const byId = new Map(sorted.map((item) => [item.external_id, item]))
  const batches: Batch[] = []
  let own: ImportItem[] = []
  let context = new Map<string, ImportItem>()
  let bytes = 0
  const close = () => {
    if (own.length > 0) batches.push({ items: [...context.values(), ...own], context: context.size })
    own = []
    context = new Map()
    bytes = 0
  }
  for (const item of sorted) {
    const above = dry_run ? containersOf(item, byId) : []
    const more = Buffer.byteLength(JSON.stringify([item, ...above]))
    const count = own.length + context.size + above.length
    if (own.length >= size || count >= MAX_ITEMS || bytes + more > MAX_BYTES) close()
    const inside = new Set(own.map(({ external_id }) => external_id))
    for (const one of above) if (!inside.has(one.external_id)) context.set(one.external_id, one)
    own.push(item)
    bytes += more
  }
  close()
  return batches
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
