import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { asyncLocalStorage, Context, type Info } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { createBookkeeping, createExecution } from '../../../activities/index.ts'
import { createCommandSender } from '../../../apps/relay/commands/send.ts'
import type { Engine } from '../../../apps/relay/commands/temporal.ts'
import type { RelayConfig } from '../../../apps/relay/config.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'
import { loadWorkerConfig } from '../../../apps/worker/config.ts'
import { createDeps } from '../../../apps/worker/deps.ts'
import type { CommandMessage, OperationInput } from '../../../workflows/operation/messages.ts'
import type { AttemptResult, GraphPage, RunEffect } from '../../../workflows/operation/state/events.ts'
import {
  canLeave,
  type Effect,
  type Event,
  isDone,
  restore,
  type State,
  snapshot,
  start,
  step,
} from '../../../workflows/operation/state.ts'
import { serverUrl } from '../../support/database.ts'
import type { Platform } from './platform.ts'

/** The target's answer to a call that it holds: done, refused, a temporary failure, or a broken connection. */
export type End = 'done' | 'refused' | 'broken' | 'cut'
const STATUS = { done: 200, refused: 409, broken: 503 }

type Attempt = {
  kind: 'run'
  effect: RunEffect
  /** The engine's tries: it starts the activity again if its worker is lost or does not know. */
  tries: number
  ended?: Promise<AttemptResult>
  answer?: (end: End) => void
  abort?: AbortController
}
export type Task =
  | Attempt
  | { kind: 'effect'; effect: Exclude<Effect, RunEffect | { type: 'wake_at' | 'cancel_attempts' }> }

/** A target that holds every call until it is told what to answer. */
export const startHeldTarget = async () => {
  let arrived: (response: ServerResponse) => void = () => {}
  const server = createServer((request, response) => {
    request.resume()
    arrived(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: () =>
      new Promise<ServerResponse>((resolve) => {
        arrived = resolve
      }),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
export type HeldTarget = Awaited<ReturnType<typeof startHeldTarget>>

/** Times in the rows' answers, which are shifted to the time of the stage. */
const CLOCKS = new Set(['at', 'deadline_at', 'escalates_at', 'not_after'])
const later = <T>(value: T, ms: number): T =>
  JSON.parse(JSON.stringify(value), (key, v) =>
    CLOCKS.has(key) && typeof v === 'string' ? new Date(Date.parse(v) + ms).toISOString() : v,
  )

/** The engine and worker parts that a platform's stages share; only one stage is active at a time. */
export const buildTheatre = (p: Platform, target: HeldTarget, policy_file: string) => {
  const worker = createDeps(
    loadWorkerConfig({
      WORKER__DATABASE__URL: p.database_url,
      WORKER__NATS__URL: serverUrl('NATS_URL'),
      WORKER__SERVICE__KEY_FILE: p.services.keyFile('worker'),
      WORKER__EXECUTORS__POLICY_FILE: policy_file,
      SIGNALBOX__NATS__PREFIX: p.prefix,
      WORKER__OPERATIONS__URL: p.running[0]?.internal_url,
    }),
    createTelemetry('worker', { level: 'silent' }),
  )
  return { p, target, worker, close: () => worker.close() }
}
type Theatre = ReturnType<typeof buildTheatre>

/**
 * One operation, carried by the real relay, reducer and activities over the real rows, in exactly the order that the
 * caller asks for. It replaces Temporal, without its concurrency, so that equal choices give equal runs.
 */
export class Stage {
  readonly operation_id: string
  state: State | undefined
  tasks: Task[] = []
  wake = Number.POSITIVE_INFINITY
  private readonly theatre: Theatre
  private readonly sender: ReturnType<typeof createCommandSender>
  private readonly activities: ReturnType<typeof createBookkeeping> & ReturnType<typeof createExecution>
  /** Activities whose worker the engine has given up. */
  private readonly lost: Attempt[] = []
  private started: OperationInput | undefined
  private mail: CommandMessage[] = []
  private ahead_ms = 0

  constructor(theatre: Theatre, operation_id: string) {
    this.theatre = theatre
    this.operation_id = operation_id
    const { activities, pool } = theatre.worker
    this.activities = { ...createBookkeeping(activities), ...createExecution(activities) }
    const engine: Engine = {
      namespace: 'default',
      place: '',
      identity: async () => undefined,
      start: async (input) => {
        this.started = input
        return { kind: 'sent' }
      },
      // For an operation of an earlier stage, one not yet started or one that is over: answers as the engine does.
      signal: async (id, message) => {
        if (id !== operation_id || !this.started || this.ended) return { kind: 'gone' }
        this.mail.push(message)
        return { kind: 'sent' }
      },
      describe: async () => (this.started ? 'running' : 'gone'),
      health: async () => {},
      close: async () => {},
    }
    const config = {
      RELAY__TEMPORAL__QUEUE_PREFIX: '',
      RELAY__TEMPORAL__SEARCH_ATTRIBUTES: false,
      RELAY__COMMANDS__IN_FLIGHT: 8,
    } as RelayConfig
    const { log } = createTelemetry('relay', { level: 'silent' })
    this.sender = createCommandSender({ pool, engine, config, log, notify: () => {}, observe: () => {} })
  }

  get now(): number {
    return Date.now() + this.ahead_ms
  }
  get ended(): boolean {
    return this.state !== undefined && isDone(this.state)
  }

  /**
   * The relay sends the next command, if any; `twice`: its first message was in doubt. Returns whether there was one.
   */
  async deliver(twice = false): Promise<boolean> {
    const unstarted = this.started === undefined
    await this.sender.turn()
    await this.sender.drain()
    const sent = this.mail.splice(0).map((message) => later(message, this.ahead_ms))
    if (this.started && unstarted) {
      const pages = await this.pages()
      this.state = start(this.operation_id, pages, later(this.started.start, this.ahead_ms), this.now)
      this.take({ type: 'due', at: this.now })
      return true
    }
    for (const command of sent) this.take({ type: 'command', at: this.now, command })
    if (twice) for (const command of sent) this.take({ type: 'command', at: this.now, command })
    return sent.length > 0
  }

  /** Time passes until something is due. */
  async wait(): Promise<void> {
    const jump = Math.max(0, Math.ceil(this.wake - this.now)) + 5
    this.ahead_ms += jump
    await this.theatre.p.query(
      `update operations.gates set deadline_at = deadline_at - make_interval(secs => $2), next_escalation_at = next_escalation_at - make_interval(secs => $2)
       where operation_id = $1 and status = 'waiting'`,
      [this.operation_id, jump / 1000],
    )
    this.take({ type: 'due', at: this.now })
  }

  /** Carries out what the reducer asked for; an attempt only begins. */
  async perform(task: Task): Promise<void> {
    if (task.kind === 'run') return this.begin(task)
    const { effect } = task
    this.tasks = this.tasks.filter((other) => other !== task)
    const { operation_id } = this
    if (effect.type === 'load_graph') this.take({ type: 'loaded', at: this.now, pages: await this.pages() })
    else if (effect.type === 'record') {
      const result = await this.within(() => this.activities.record_changes({ operation_id, batch: effect.batch }))
      this.take({ type: 'recorded', at: this.now, result: later(result, this.ahead_ms) })
    } else if (effect.type === 'close') {
      const { type: _, ...end } = effect
      const result = await this.within(() => this.activities.close_operation({ operation_id, ...end }))
      this.take({ type: 'closed', at: this.now, result })
    } else throw new Error(`nothing here writes to a catalog: ${effect.node_id}`)
  }

  /** The claim; if it is granted, the target then has the call. */
  private async begin(task: Attempt): Promise<void> {
    const { type: _, node: _node, name: _name, slice_s: _slice_s, ...attempt } = task.effect
    const arrived = this.theatre.target.next()
    task.tries += 1
    task.abort = new AbortController()
    const run = () => this.activities.run_attempt({ operation_id: this.operation_id, ...attempt })
    task.ended = this.within(run, task)
    const response = await Promise.race([arrived, task.ended.catch(() => undefined)])
    if (!response || 'status' in response) return this.take_end(task)
    task.answer = (end) => {
      if (end === 'cut') response.destroy()
      else response.writeHead(STATUS[end], { 'content-type': 'application/json' }).end('{}')
    }
  }

  /** The target answers. */
  async end(task: Attempt, end: End): Promise<void> {
    task.answer?.(end)
    await this.take_end(task)
  }

  /** The worker is lost: the engine starts the same activity again, and the old one may still end. */
  lose(task: Attempt): void {
    this.lost.push({ ...task })
    delete task.answer
    delete task.ended
  }

  /** A worker that was considered lost finishes after all. */
  async endLost(end: End): Promise<AttemptResult | undefined> {
    const task = this.lost.shift()
    task?.answer?.(end)
    return task?.ended?.catch(() => undefined)
  }
  get anyLost(): boolean {
    return this.lost.length > 0
  }

  /** Continues as new, if that is possible now. */
  async leave(): Promise<void> {
    if (!this.state || !canLeave(this.state) || this.tasks.length > 0) return
    const carried = JSON.parse(JSON.stringify(snapshot(this.state)))
    this.state = restore(carried, await this.pages(), this.now)
    this.take({ type: 'due', at: this.now })
  }

  async close(): Promise<void> {
    for (const task of this.tasks) if (task.kind === 'run' && task.answer) await this.end(task, 'done')
    while (this.anyLost) await this.endLost('done')
  }

  private async take_end(task: Attempt): Promise<void> {
    const { effect } = task
    let result: AttemptResult
    try {
      result = (await task.ended) ?? { status: 'dropped' }
    } catch (error) {
      if (!(error instanceof ApplicationFailure) || error.nonRetryable) throw error
      // The outcome is unknown and the attempt may be repeated, so the engine repeats it.
      delete task.answer
      delete task.ended
      return
    }
    this.tasks = this.tasks.filter((other) => other !== task)
    this.take({ ...effect, type: 'attempt_ended', at: this.now, result })
  }

  private take(...events: Event[]): void {
    if (!this.state) throw new Error('it has not begun')
    const { state, effects } = step(this.state, ...events)
    this.state = state
    this.wake = Number.POSITIVE_INFINITY
    for (const effect of effects) {
      if (effect.type === 'wake_at') this.wake = effect.at
      else if (effect.type === 'run') this.tasks.push({ kind: 'run', effect, tries: 0 })
      else if (effect.type === 'cancel_attempts') this.abortAll()
      else this.tasks.push({ kind: 'effect', effect })
    }
  }

  private abortAll(): void {
    for (const task of this.tasks) if (task.kind === 'run') task.abort?.abort()
  }

  private async pages(): Promise<GraphPage[]> {
    const pages: GraphPage[] = []
    for (let from: number | null = 0; from !== null; from = pages.at(-1)?.next ?? null)
      pages.push(await this.activities.load_graph({ operation_id: this.operation_id, from }))
    return pages.map((page) => later(page, this.ahead_ms))
  }

  /** Runs it as a Temporal activity, with the context that the SDK would give. */
  private within<T>(run: () => Promise<T>, task?: Attempt): Promise<T> {
    const signal = task?.abort?.signal ?? new AbortController().signal
    const info = {
      attempt: task?.tries ?? 1,
      namespace: 'stage',
      workflowExecution: { workflowId: this.operation_id, runId: '' },
    } as Info
    const never = new Promise<never>(() => {})
    const context = new Context(
      info,
      never,
      signal,
      () => {},
      undefined as never,
      undefined as never,
      undefined as never,
      {},
    )
    return asyncLocalStorage.run(context, run)
  }
}
