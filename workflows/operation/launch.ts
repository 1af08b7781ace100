import { ActivityFailure } from '@temporalio/common'
import { CancellationScope, patched, proxyActivities, proxyLocalActivities, sleep } from '@temporalio/workflow'
import type { Bookkeeping, Execution, Local } from '../../activities/index.ts'
import type { OperationInput } from './messages.ts'
import type { AttemptResult, CatalogResult, Effect, Event, GraphPage, RunEffect } from './state/events.ts'

/** Time beyond its slice that an activity may take: claim and result each wait up to 20 s for Postgres. */
const MARGIN_S = 45

const patient = { initialInterval: 200, maximumInterval: '10s', backoffCoefficient: 2 } as const
/** Each activity is short and repeatable, and is retried until Postgres answers. */
const bookkeeping = ({ bookkeeping_queue }: OperationInput) =>
  proxyActivities<Bookkeeping>({ taskQueue: bookkeeping_queue, startToCloseTimeout: '10s', retry: patient })

const local = proxyLocalActivities<Local>({ startToCloseTimeout: '10s', retry: patient })

/** Whether the expiry of a gate is reported at once. Such operations have all older changes. */
export const tellsExpiry = (): boolean => patched('tell-expiry')

/** Whether a gate opens only once all outputs that it binds have arrived. */
export const waitsForBound = (): boolean => tellsExpiry() || patched('wait-for-bound')

/** Whether an undo, a retry and a deadline count as they were decided. */
export const goesByRows = (): boolean => waitsForBound() || patched('as-decided')

/** Whether a condition is asked anew once a node before it runs again. */
export const asksAnew = (): boolean => goesByRows() || patched('ask-anew')

/** Whether commands, answers and undos count in the order of the rows. */
export const keepsOrder = (): boolean => asksAnew() || patched('keep-order')

/** Whether gates are looked at whenever a node comes back to them. */
export const looksAgain = (): boolean => keepsOrder() || patched('look-again')

/** Whether an attempt that is told to stop still ends by its own result. */
const hearsOut = (): boolean => looksAgain() || patched('hear-out')

/** Whether search attributes are written only after the record they show. */
export const showsAtRest = (): boolean => hearsOut() || patched('show-at-rest')

/** Whether the rows of a refused command are put back before a node starts. */
export const undoesFirst = (): boolean => showsAtRest() || patched('undo-first')

/** Whether the last facts are recorded with the end. */
export const closesWithRecord = (): boolean => undoesFirst() || patched('close-with-record')

/** Loads the graph of the operation page by page, in the workflow's own process: a start waits for no queue. */
export const loadPages = async (input: OperationInput): Promise<GraphPage[]> => {
  const { operation_id } = input
  const { load_graph } = closesWithRecord() || patched('local-graph') ? local : bookkeeping(input)
  const pages: GraphPage[] = []
  for (let from: number | null = 0; from !== null; from = pages.at(-1)?.next ?? null)
    pages.push(await load_graph({ operation_id, from }))
  // A patch was applied between two pages, so they are read again.
  if (pages.some(({ plan_revision }) => plan_revision !== pages[0]?.plan_revision)) return loadPages(input)
  return pages
}

/**
 * Starts the effects of the reducer; each pushes its result back as an event. A result is a value: an activity that
 * fails permanently is reported to the reducer as an unknown outcome.
 */
export const createLauncher = (input: OperationInput, push: Push, traced: () => Traced) => {
  const launching: Launching = { input, push, traced, activities: activitiesOf(input) }
  // Only a forced cancel stops attempts, and it stops all of them; a scope for each would cost five promises per node.
  let attempts = new CancellationScope({ cancellable: true })
  const timer = createTimer(push)

  const launch = (effect: Exclude<Effect, RunEffect>): void => {
    switch (effect.type) {
      case 'cancel_attempts':
        attempts.cancel()
        attempts = new CancellationScope({ cancellable: true })
        return
      case 'cancel_attempt':
        tellAgent(launching, effect)
        return
      case 'apply_catalog':
        applyCatalog(launching, effect)
        return
      case 'record':
        record(launching, effect)
        return
      case 'load_graph':
        void loadPages(input).then((pages) => push({ type: 'loaded', at: Date.now(), pages }))
        return
      case 'close':
        close(launching, effect)
        return
      case 'wake_at':
        timer(effect.at)
    }
  }

  return (effects: readonly Effect[]): void => {
    let runs: RunEffect[] = []
    const launchRuns = () => {
      const batch = runs
      runs = []
      if (batch.length > 0) void attempts.run(async () => batch.forEach((effect) => void run(launching, effect)))
    }
    for (const effect of effects) {
      if (effect.type === 'run') {
        runs.push(effect)
        continue
      }
      launchRuns()
      launch(effect)
    }
    launchRuns()
  }
}

type Push = (event: Event) => void
type EffectOf<T extends Effect['type']> = Extract<Effect, { type: T }>
/** The trace that the work belongs to: that of the command taken last. It is data; activities create the spans. */
export type Traced = { trace?: string }
type Launching = {
  input: OperationInput
  push: Push
  traced: () => Traced
  activities: ReturnType<typeof activitiesOf>
}

const activitiesOf = (input: OperationInput) => {
  const { record_changes, close_operation } = bookkeeping(input)
  const { apply_catalog_result, restore_catalog } = proxyActivities<Bookkeeping>({
    taskQueue: input.bookkeeping_queue,
    startToCloseTimeout: '15s',
    retry: { ...patient, maximumAttempts: 5 },
  })
  const { run_attempt } = proxyActivities<Execution>({
    startToCloseTimeout: '1m',
    heartbeatTimeout: '10s',
    retry: { ...patient, initialInterval: '1s', maximumAttempts: 5 },
    // Unless set, a cancel ends the call here at once, while the attempt acts on until its next heartbeat.
    ...(hearsOut() && { cancellationType: 'WAIT_CANCELLATION_COMPLETED' as const }),
  })
  const { cancel_attempt } = proxyActivities<Execution>({
    startToCloseTimeout: '15s',
    retry: { ...patient, maximumAttempts: 10 },
  })
  return { record_changes, close_operation, apply_catalog_result, restore_catalog, run_attempt, cancel_attempt }
}

const run = ({ input: { operation_id }, push, traced, activities }: Launching, effect: RunEffect): void => {
  const { type: _, name, slice_s, node, ...attempt } = effect
  const { role, generation, slice } = attempt
  const options = {
    activityId: `${role === 'undo' ? 'u' : 'n'}:${attempt.node_id}:${attempt.attempt}:${slice}`,
    summary: summaryOf(effect),
    startToCloseTimeout: (slice_s + MARGIN_S) * 1000,
  }
  const ended = (result: AttemptResult) =>
    push({ type: 'attempt_ended', at: Date.now(), node, role, generation, attempt: attempt.attempt, slice, result })
  void activities.run_attempt
    .executeWithOptions(options, [{ operation_id, ...attempt, ...traced() }])
    .then(ended, (error: unknown) => ended({ status: 'unknown', error: lost(error) }))
}

/** Nothing waits for this: the agent also learns it from the answer to its next message. */
const tellAgent = ({ input: { operation_id }, activities }: Launching, effect: EffectOf<'cancel_attempt'>): void => {
  const { type: _, ...attempt } = effect
  if (!patched('cancel-attempt')) return
  void activities.cancel_attempt
    .executeWithOptions({ summary: `tell the agent of ${attempt.node_id} to stop` }, [{ operation_id, ...attempt }])
    .catch(() => {})
}

const applyCatalog = (
  { input: { operation_id }, push, traced, activities }: Launching,
  { node, node_id, role, generation, attempt }: EffectOf<'apply_catalog'>,
): void => {
  const [write, summary] =
    role === 'run'
      ? [activities.apply_catalog_result, `write ${node_id} to the catalog`]
      : [activities.restore_catalog, `take ${node_id} back in the catalog`]
  void write
    .executeWithOptions({ summary }, [{ operation_id, node_id, generation, attempt, ...traced() }])
    .catch((error: unknown): CatalogResult => ({ status: 'away', message: messageOf(error) }))
    .then((result) => push({ type: 'catalog_ended', at: Date.now(), node, role, generation, attempt, result }))
}

const record = (
  { input: { operation_id }, push, traced, activities }: Launching,
  { batch }: EffectOf<'record'>,
): void => {
  void activities.record_changes
    .executeWithOptions({ summary: `record ${batch.record_seq}` }, [{ operation_id, batch, ...traced() }])
    .then((result) => push({ type: 'recorded', at: Date.now(), result }))
}

const close = ({ input: { operation_id }, push, activities }: Launching, effect: EffectOf<'close'>): void => {
  const { type: _, ...end } = effect
  void activities.close_operation
    .executeWithOptions({ summary: `end as ${end.status}` }, [{ operation_id, ...end }])
    .then((result) => push({ type: 'closed', at: Date.now(), result }))
}

const MAX_SUMMARY = 100
const summaryOf = ({ name, role, attempt, slice }: RunEffect): string =>
  `${role === 'undo' ? 'undo ' : ''}${name.slice(0, MAX_SUMMARY)}, attempt ${attempt}${slice > 0 ? `, part ${slice + 1}` : ''}`

const DAY_MS = 86_400_000
/**
 * One timer for the nearest due time, replaced only by an earlier one. Firing early is harmless, so none lasts longer
 * than a day: the engine bounds timers, and a run that only waits is still checked now and then.
 */
const createTimer = (push: (event: Event) => void) => {
  let set: { at: number; scope: CancellationScope } | undefined
  return (at: number): void => {
    if (set && set.at <= at) return
    set?.scope.cancel()
    const scope = new CancellationScope({ cancellable: true })
    const mine = { at, scope }
    set = mine
    scope
      .run(() =>
        sleep(Math.min(Math.max(at - Date.now(), 1), DAY_MS), { summary: `due ${new Date(at).toISOString()}` }),
      )
      .then(
        () => {
          if (set === mine) set = undefined
          push({ type: 'due', at: Date.now() })
        },
        () => {},
      )
  }
}

const messageOf = (error: unknown): string => {
  const cause = error instanceof ActivityFailure ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message : String(cause)
}

const lost = (error: unknown) => ({
  class: 'timeout',
  message: `No answer came back from the worker: ${messageOf(error)}`.slice(0, 300),
  retryable: false,
})
