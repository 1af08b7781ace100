import {
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  makeContinueAsNewFunc,
  proxySinks,
  setCurrentDetails,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import {
  asksAnew,
  closesWithRecord,
  createLauncher,
  goesByRows,
  keepsOrder,
  loadPages,
  looksAgain,
  showsAtRest,
  tellsExpiry,
  undoesFirst,
  waitsForBound,
} from './launch.ts'
import {
  COMMAND_SIGNAL,
  type CommandMessage,
  NODE_QUERY,
  type OperationInput,
  type OperationOutcome,
  type OperationSinks,
  REFUSE_QUERY,
  STATE_QUERY,
} from './messages.ts'
import { type Asked, refusalOf } from './refuse.ts'
import type { Effect } from './state/events.ts'
import type { State } from './state/types.ts'
import {
  brokenInvariant,
  canLeave,
  type Event,
  isCommand,
  isDone,
  outcome,
  restore,
  type Snapshot,
  snapshot,
  start,
  step,
} from './state.ts'
import { createFace, nodeView, stateView } from './view.ts'

const command = defineSignal<[CommandMessage]>(COMMAND_SIGNAL)
const stateQuery = defineQuery<unknown>(STATE_QUERY)
const nodeQuery = defineQuery<unknown, [string]>(NODE_QUERY)
const refuseQuery = defineQuery<unknown, [Asked?]>(REFUSE_QUERY)
const DESCRIBED = {
  command: {
    description:
      'Only the relay sends this: a command that Postgres has accepted. To stop the operation by hand, use Cancel.',
  },
  state: { description: 'Status, counts, what it waits for, what is in flight, the last command taken.' },
  refuse: {
    description:
      'Why a command would be refused for the state of the operation, such as {"kind": "retry", "node_id": "a"}; null where it would not.',
  },
  node: { description: 'One node by id: state, attempt, generation, what it waits for.' },
}

const FOREIGN = 'a signal that is not from the relay'

/** Carries one locked plan to its end. One operation is one workflow; its id is the operation id. */
export async function operation(input: OperationInput): Promise<OperationOutcome> {
  const inbox: Event[] = []
  let state: State | undefined
  let trace = input.trace ?? recorded(input.start)
  let details = ''
  let foreign = 0
  const show = () => setCurrentDetails(foreign > 0 ? `${details}\n\nIgnored: ${foreign} × ${FOREIGN}` : details)
  // Handlers only enqueue or read, so continue-as-new cannot interrupt them halfway.
  setHandler(
    command,
    (message) => {
      if (!isCommand(message)) {
        foreign += 1
        return show()
      }
      trace = recorded(message)
      inbox.push({ type: 'command', at: Date.now(), command: message })
    },
    DESCRIBED.command,
  )
  setHandler(stateQuery, () => (state ? stateView(state) : 'loading'), DESCRIBED.state)
  setHandler(nodeQuery, (node_id) => (state ? nodeView(state, node_id) : 'loading'), DESCRIBED.node)
  setHandler(
    refuseQuery,
    (asked) => (state ? (refusalOf(state, asked, Date.now()) ?? null) : 'loading'),
    DESCRIBED.refuse,
  )
  // A cancel in the engine itself is handled as a command; it must not tear down the code that carries it out.
  CancellationScope.current().cancelRequested.catch(
    () => void inbox.push({ type: 'cancel_requested', at: Date.now(), by: 'temporal' }),
  )

  return CancellationScope.nonCancellable(async () => {
    const pages = await loadPages(input)
    const carried = input.carried as Snapshot | undefined
    state = orTell(() =>
      carried ? restore(carried, pages, Date.now()) : start(input.operation_id, pages, input.start, Date.now()),
    )
    state.expires_unsaid = !tellsExpiry()
    state.opens_early = !waitsForBound()
    state.as_it_came = !goesByRows()
    state.trusts_answers = !asksAnew()
    state.out_of_order = !keepsOrder()
    state.gates_once = !looksAgain()
    state.starts_early = !undoesFirst()
    state.closes_apart = !closesWithRecord()
    const launch = createLauncher(
      input,
      (event) => void inbox.push(event),
      () => (trace ? { trace } : {}),
    )
    const face = createFace(input, showsAtRest())
    inbox.push({ type: 'due', at: Date.now() })
    if (isVersioned()) void lookDaily((event) => void inbox.push(event))

    while (!isDone(state)) {
      await condition(() => inbox.length > 0)
      if (shouldRoll(input, state)) inbox.push({ type: 'roll', at: Date.now() })
      const effects = move(state, inbox.splice(0))
      launch(effects)
      details = face(state, effects)
      show()
      if (state.rolling && inbox.length === 0 && canLeave(state))
        return next({ ...input, carried: snapshot(state), ...(trace && { trace }) })
    }
    return outcome(state)
  })
}

/** Returns the trace of a command whose spans are recorded; others would only lengthen the history. */
const recorded = ({ trace }: CommandMessage): string | undefined => (trace?.endsWith('-01') ? trace : undefined)

/** Takes one step, or none of it if the result is invalid. */
const move = (state: State, events: Event[]): readonly Effect[] =>
  orTell(() => {
    const { effects } = step(state, ...events)
    const broken = brokenInvariant(state, effects)
    if (broken !== undefined) throw new Error(broken)
    return effects
  })

const { engine } = proxySinks<OperationSinks>()

/**
 * A reducer that throws fails the workflow task, which the engine retries, so a correct build resumes exactly here and
 * loses no message. Meanwhile the mismatch is recorded in the rows, which pauses the operation as engine_mismatch
 * (operations.md 2.3).
 */
const orTell = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    engine.mismatch(error instanceof Error ? error.message : String(error))
    throw error
  }
}

/** Starts the next run, on the build that is current then. */
const next = (input: OperationInput): Promise<never> =>
  makeContinueAsNewFunc<typeof operation>(isVersioned() ? { initialVersioningBehavior: 'AUTO_UPGRADE' } : {})(input)

const isVersioned = (): boolean => Boolean(workflowInfo().currentDeploymentVersion?.deploymentName)

/** A run that only waits also notices a new build. */
const lookDaily = async (push: (event: Event) => void): Promise<never> => {
  for (;;) {
    await sleep('24 hours', { summary: 'is there a newer build' })
    push({ type: 'due', at: Date.now() })
  }
}

/** Whether the history has grown long or there is a newer build: the run is then left at the next quiet moment. */
const shouldRoll = ({ test_roll_events }: OperationInput, { rolling }: State): boolean => {
  const { continueAsNewSuggested, historyLength, targetWorkerDeploymentVersionChanged: newer } = workflowInfo()
  return !rolling && (continueAsNewSuggested || newer || historyLength > (test_roll_events ?? Number.POSITIVE_INFINITY))
}
