import type { Db } from '../../../db/client.ts'
import { type CommandState, listCommandStates } from '../../../db/operations/commands/rows.ts'
import type { CommandKind } from '../../../workflows/operation/messages.ts'
import type { Logger } from '../../shared/telemetry.ts'

const POLL_MS = 25
const MAX_WAITERS = 500

const DONE_WHEN_DELIVERED: ReadonlySet<string> = new Set<CommandKind>([
  'pause',
  'cancel',
  'gate_decided',
  'patch_closed',
])
/** Commands that are complete in Postgres: telling the engine is enough (operations.md 1.3). */
export const isDecidedInPostgres = (kind: string): boolean => DONE_WHEN_DELIVERED.has(kind)

/** Commands that are done with their commit: the engine is told, and nobody waits for that. */
export const isDoneAtOnce = (kind: string): boolean => kind === 'patch_proposed'

/**
 * Whether a waiting caller can be answered: the outcome is known, or only delivery was left and has happened. Behind a
 * held start it need not happen: the engine gets both together.
 */
const isSettled = ({ kind, status, held }: Pick<CommandState, 'kind' | 'status' | 'held'>): boolean =>
  status === 'delivered' || (status === 'pending' && held)
    ? isDecidedInPostgres(kind)
    : status !== 'pending' && status !== 'sending'

type Told = Pick<CommandState, 'command_id' | 'kind'>

/** Parses the relay's wake-up call; `undefined` for any other message, which only means to look. */
const toldIn = (data: Uint8Array): Told | undefined => {
  try {
    const { command_id, kind } = JSON.parse(Buffer.from(data).toString()) as Partial<Told>
    return typeof command_id === 'string' && typeof kind === 'string' ? { command_id, kind } : undefined
  } catch {
    return undefined
  }
}

type Waiter = { resolve: (state: CommandState | undefined) => void; timer: NodeJS.Timeout }

/**
 * Waits for the outcome of commands: one query for all waiting ids every 25 ms, and at once when woken. Above 500
 * waiters, or on timeout, the caller gets `undefined` and answers 202.
 */
export const createOutcomes = (db: Db, log: Logger) => {
  const waiters = new Map<string, Set<Waiter>>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let again = false

  const settle = (command_id: string, state: CommandState | undefined) => {
    for (const waiter of waiters.get(command_id) ?? []) {
      clearTimeout(waiter.timer)
      waiter.resolve(state)
    }
    waiters.delete(command_id)
  }

  const look = async () => {
    const states = await listCommandStates(db, [...waiters.keys()])
    for (const state of states) if (isSettled(state)) settle(state.command_id, state)
  }

  const run = () => {
    clearTimeout(timer)
    timer = undefined
    if (running) {
      again = true
      return
    }
    if (waiters.size === 0) return
    running = look()
      .catch((error: unknown) => log.warn({ err: error }, 'the outcomes of commands could not be read'))
      .finally(() => {
        running = undefined
        if (again) {
          again = false
          run()
        } else schedule()
      })
  }
  const schedule = () => {
    if (waiters.size > 0 && timer === undefined) timer = setTimeout(run, POLL_MS)
  }

  return {
    /** Returns the settled state of the command, or `undefined` if it is not settled in time. */
    within: (command_id: string, wait_ms: number): Promise<CommandState | undefined> => {
      if (wait_ms <= 0 || waiters.size >= MAX_WAITERS) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const waiter: Waiter = {
          resolve,
          timer: setTimeout(() => {
            const set = waiters.get(command_id)
            set?.delete(waiter)
            if (set?.size === 0) waiters.delete(command_id)
            resolve(undefined)
          }, wait_ms),
        }
        const set = waiters.get(command_id)
        if (set) set.add(waiter)
        else waiters.set(command_id, new Set([waiter]))
        schedule()
      })
    },
    /**
     * Something was delivered or recorded: look now. If the message names a command that is complete once the engine
     * has been told of it, its callers need no look.
     */
    hear: (data: Uint8Array): void => {
      const told = toldIn(data)
      if (told && isDecidedInPostgres(told.kind))
        settle(told.command_id, { ...told, status: 'delivered', outcome: null, held: false })
      else run()
    },
    close: () => {
      clearTimeout(timer)
      for (const command_id of [...waiters.keys()]) settle(command_id, undefined)
    },
  }
}
export type Outcomes = ReturnType<typeof createOutcomes>
