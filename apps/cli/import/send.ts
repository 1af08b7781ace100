import { setTimeout as delay } from 'node:timers/promises'
import type {
  ImportItem,
  ImportJob,
  ImportOptions,
  ImportReply,
  ImportResult,
  ImportSource,
} from '../../shared/contracts/imports/imports.ts'
import { digest } from '../../shared/data/digest.ts'
import { CliError, EXIT, failure } from '../errors.ts'
import type { Api } from '../session/api.ts'
import { containersFirst } from './items.ts'

export type Plan = {
  api: Api
  source: ImportSource
  items: readonly ImportItem[]
  /** How many items go into one job, or into one request of a dry run. */
  size: number
  options: ImportOptions
  dry_run: boolean
  /** Each job's key is derived from this key and from the job's items, so repeating the run finds its jobs. */
  key: string
  onBatch: (batch: BatchDone) => void
  /** Called with the number of items that have a result. */
  onProgress?: (done: number) => void
  onJob?: (job_id: string) => void
}
/** One finished job or request: how many items are done so far, out of how many, and the results of its items. */
export type BatchDone = {
  batch: number | string
  done: number
  of: number
  outcomes: Record<string, number>
  results: ImportResult[]
}
type Batch = {
  items: ImportItem[] /** The first of them are included only so that the others find their containers. */
  context: number
}

/** Limits of a request that is answered at once. */
const MAX_ITEMS = 200
const MAX_BYTES = 900_000
/** How often one request is sent while the catalog allows a repeat: enough for some minutes. */
const TRIES = 30
const LONGEST_WAIT_MS = 5000
const FOLLOW_MS = 200

/** How many items go into the next batch: fewer after a batch that was too much for the catalog, then more again. */
type Pace = { size: number }

/**
 * Sends the items, containers first, as jobs, one by one. The catalog completes a job even if this client ends. Items
 * that name a target of a later job are sent once more at the end. A dry run compares them in requests instead.
 */
export const sendItems = async (plan: Plan): Promise<ImportResult[]> => {
  const sorted = containersFirst(plan.items)
  const results = new Map<string, ImportResult>()
  const at = new Map<string, number>()
  let done = 0
  const way = { jobs: true }
  const tell = (batch: number | string, answers: ImportResult[]) =>
    plan.onBatch({ batch, done, of: sorted.length, outcomes: outcomesOf(answers), results: answers })
  const batches = plan.dry_run
    ? compared(sorted, plan)
    : taken(sorted, plan, way, '', (part) => plan.onProgress?.(done + part))
  for await (const { number, answers } of batches) {
    for (const answer of answers) {
      at.set(answer.external_id, number)
      results.set(answer.external_id, answer)
    }
    done += answers.length
    plan.onProgress?.(done)
    tell(number, answers)
  }
  if (plan.dry_run) forgetOthers(results, sorted)
  const late = sorted.filter(({ external_id, relationships = [] }) =>
    relationships.some(({ target_external_id: to }) => (at.get(to ?? '') ?? 0) > (at.get(external_id) ?? 0)),
  )
  for await (const { number, answers } of plan.dry_run ? [] : taken(late, plan, way, 'late-')) {
    for (const answer of answers) results.set(answer.external_id, joined(results.get(answer.external_id), answer))
    tell(`late-${number}`, answers)
  }
  return sorted.flatMap((item) => results.get(item.external_id) ?? [])
}

/** How many results there are of each outcome. */
export const outcomesOf = (results: readonly ImportResult[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(results, ({ outcome }) => outcome)].map(([outcome, all]) => [outcome, all.length]))

type Answered = { number: number; answers: ImportResult[] }

/** Sends all items as jobs, each when the one before has ended; those of a machine, which has no jobs, as requests. */
async function* taken(
  sorted: readonly ImportItem[],
  plan: Plan,
  way: { jobs: boolean },
  pass: string,
  onProgress: (done: number) => void = () => {},
): AsyncGenerator<Answered, void, undefined> {
  for (let from = 0, number = 0; from < sorted.length; ) {
    const { jobs } = way
    const { items } = batchFrom(sorted, from, new Map(), false, jobs ? plan.size : Math.min(plan.size, MAX_ITEMS))
    try {
      const answers = await (jobs ? runJob(plan, items, pass, onProgress) : sendNow(plan, items, pass))
      yield { number, answers }
      from += jobs ? items.length : answers.length
      number += 1
    } catch (error) {
      if (!jobs || !(error instanceof CliError) || error.code !== 'person_required') throw error
      way.jobs = false
    }
  }
}

/** Sends items in a request that is answered at once. Returns the results of those for which there was time. */
const sendNow = async (plan: Plan, items: ImportItem[], pass: string): Promise<ImportResult[]> => {
  const path = '/api/v1/resources:import'
  const { body } = await patiently(() => plan.api.send<ImportReply>('POST', path, ...requestOf(plan, items, pass)))
  const answers = body.results.filter(({ outcome }) => outcome !== 'deferred')
  if (answers.length === 0) throw tooSlow()
  return answers
}

/** The body and the headers of a request that imports these items. */
const requestOf = ({ source, options, key }: Plan, items: ImportItem[], pass: string) =>
  [{ source, items, options }, { 'idempotency-key': digest([key, source, pass, options, items]) }] as const

/** Starts one job, or finds the one that an earlier run with this key started, and follows it to its end. */
const runJob = async (
  plan: Plan,
  items: ImportItem[],
  pass: string,
  onProgress: (done: number) => void,
): Promise<ImportResult[]> => {
  const { api, onJob } = plan
  const request = requestOf(plan, items, pass)
  const { body: started } = await patiently(() => api.send<ImportJob>('POST', '/api/v1/imports', ...request))
  const path = `/api/v1/imports/${started.job_id}`
  onJob?.(started.job_id)
  for (let job = started; ; job = await patiently(() => api.get<ImportJob>(path))) {
    onProgress(job.done)
    if (job.status === 'done') return patiently(() => api.list<ImportResult>(`${path}/results`, {}, true))
    if (job.ended_at !== null)
      throw failure(
        EXIT.failed,
        `The import ${job.job_id} ended as ${job.status}: ${job.problem?.detail ?? 'canceled'}.`,
      )
    await delay(FOLLOW_MS)
  }
}

/** Retries while the catalog says that the same request may be repeated. */
export const patiently = async <T>(act: () => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await act()
    } catch (error) {
      const wait_ms = error instanceof CliError ? error.retry_after_ms : undefined
      if (wait_ms === undefined || tries === TRIES) throw error
      await delay(Math.min(wait_ms, LONGEST_WAIT_MS))
    }
  }
}

/** Compares all items of a dry run in requests. No items are stored, so each request includes the needed containers. */
async function* compared(sorted: readonly ImportItem[], plan: Plan): AsyncGenerator<Answered, void, undefined> {
  const byId = new Map(sorted.map((item) => [item.external_id, item]))
  const size = Math.min(plan.size, MAX_ITEMS - 50)
  const pace = { size }
  for (let from = 0, number = 0; from < sorted.length; ) {
    const answers = await compare(plan, batchFrom(sorted, from, byId, true, pace.size), pace, size)
    if (!answers) continue
    yield { number, answers }
    from += answers.length
    number += 1
  }
}

/** Compares one batch, or at least its first items. `undefined` if it was too much, so fewer items must be sent. */
const compare = async (
  { api, source, options }: Plan,
  { items, context }: Batch,
  pace: Pace,
  size: number,
): Promise<ImportResult[] | undefined> => {
  const path = '/api/v1/resources:import?validate_only=true'
  const own = items.length - context
  for (let tries = 1; ; tries++) {
    try {
      const { body } = await api.send<ImportReply>('POST', path, { source, items, options })
      const answers = body.results.slice(context).filter(({ outcome }) => outcome !== 'deferred')
      if (answers.length === 0) throw tooSlow()
      pace.size = answers.length < own ? answers.length : tries === 1 ? Math.min(size, pace.size * 2) : pace.size
      return answers
    } catch (error) {
      const wait_ms = error instanceof CliError ? error.retry_after_ms : undefined
      if (wait_ms === undefined || tries === TRIES) throw error
      if (tries === 1) pace.size = Math.ceil(own / 2)
      await delay(Math.min(wait_ms, LONGEST_WAIT_MS))
      if (own > 1) return undefined
    }
  }
}

/** The containers of a dry run took all the time of the request. */
const tooSlow = () => {
  const error = new CliError(EXIT.error, 'failed   The catalog is too busy to look at a single item in time.')
  error.retry_after_ms = LONGEST_WAIT_MS
  return error
}

/** The items of one batch; those of a dry run include the containers that precede them. */
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
    if (own.length > 0 && ((dry_run && count > MAX_ITEMS) || bytes > MAX_BYTES)) break
    for (const one of above) context.set(one.external_id, one)
    own.push(item)
  }
  return { items: [...context.values(), ...own], context: context.size }
}

/** The containers of an item within the file, outermost first. */
const containersOf = (item: ImportItem, byId: ReadonlyMap<string, ImportItem>): ImportItem[] => {
  const above: ImportItem[] = []
  for (let at = byId.get(item.parent_external_id ?? ''); at; at = byId.get(at.parent_external_id ?? ''))
    above.unshift(at)
  return above
}

/** In a dry run, a target in another batch does not exist yet, but will. */
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
