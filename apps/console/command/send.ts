import { useEffect, useReducer, useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { type Command, commandSender, dryRun, type Outcome } from '../api/commands.ts'
import { usePhase } from '../api/hooks.ts'
import { addRecorded, type Recorded } from '../api/recorded.ts'
import { sessionPhase } from '../session/token.ts'

type Phase = 'open' | 'sending' | 'accepted' | 'unknown'
type State = {
  phase: Phase
  problem: Problem | null
  accepted_at: string
  recorded: Recorded | undefined
  checked: boolean
}
type Step =
  | { type: 'checked' | 'sending' | 'password_confirmed' }
  | { type: 'accepted'; at: string; recorded: Recorded | undefined }
  | { type: 'refused' | 'unknown'; problem: Problem | null }

const OPEN: State = { phase: 'open', problem: null, accepted_at: '', recorded: undefined, checked: false }

const step = (state: State, event: Step): State => {
  switch (event.type) {
    case 'checked':
      return { ...state, checked: true }
    case 'sending':
      return { ...state, phase: 'sending', problem: null }
    case 'password_confirmed':
      return { ...state, problem: null }
    case 'accepted':
      return { ...state, phase: 'accepted', accepted_at: event.at, recorded: event.recorded }
    case 'refused':
      return { ...state, phase: 'open', problem: event.problem }
    case 'unknown':
      return { ...state, phase: 'unknown', problem: event.problem }
  }
}

/** Keeps a recorded command until its outcome is known; undefined for a reply that names none. */
export const keepRecorded = (path: string, reply: unknown): Recorded | undefined => {
  const { command, operation_id: own } = reply as { command?: { command_id?: string }; operation_id?: string }
  const operation_id = /^\/v1\/operations\/([^/]+)\//.exec(path)?.[1] ?? own
  if (!command?.command_id || operation_id === undefined) return undefined
  const one = { operation_id, command_id: command.command_id }
  addRecorded(one)
  return one
}

/** Completes a command as it is sent; a problem is shown instead of an answer. */
export type Complete = (command: Command) => Promise<Command | Problem>
type Answers<Reply> = { done: (reply: Reply) => void; refused?: (problem: Problem) => void; close: () => void }

/** Sends a dialog's command, keeps its outcome. */
export const useCommand = <Reply>({ done, refused, close }: Answers<Reply>) => {
  const [state, tell] = useReducer(step, OPEN)
  const [sendOnce] = useState(commandSender)
  const sent = useRef<Command>(undefined)
  /** A second press before the dialog redraws must not send again. */
  const sending = useRef(false)

  const answered = (outcome: Outcome<Reply>) => {
    if (outcome.kind === 'applied') {
      done(outcome.reply)
      return close()
    }
    if (outcome.kind === 'accepted') {
      done(outcome.reply)
      return tell({ type: 'accepted', at: outcome.at, recorded: keepRecorded(sent.current?.path ?? '', outcome.reply) })
    }
    const { kind, problem } = outcome
    // The session dialog says that the session is over, once it is open.
    const covered = problem.status === 401 && sessionPhase().name === 'ended'
    tell({ type: kind === 'unknown' ? kind : 'refused', problem: covered ? null : problem })
    if (kind === 'refused') refused?.(problem)
  }

  /** Sends the command, with a signature if one is required; after a missing answer it repeats what it sent. */
  const send = async (given: Command, complete: Complete = async () => given) => {
    if (sending.current) return
    sending.current = true
    tell({ type: 'sending' })
    if (state.phase !== 'unknown') sent.current = undefined
    try {
      const command = sent.current ?? (await complete(given))
      if (!('body' in command)) return tell({ type: 'refused', problem: command })
      sent.current = command as Command
      answered(await sendOnce<Reply>(sent.current))
    } catch (thrown) {
      // It cannot be closed while it sends, so it must not stay so.
      tell({ type: sent.current ? 'unknown' : 'refused', problem: problemOf(thrown) })
    } finally {
      sending.current = false
    }
  }
  return { ...state, send, tell }
}

export type Tried<Effect> = { effect: Effect | null; problem: Problem | null }
export const UNTRIED = { effect: null, problem: null }

/** The server's dry run of a command, for this body alone; repeated when `again` flips, and after a new sign-in. */
export const useDryRun = <Effect>(command: Command | null, again: boolean): Tried<Effect> => {
  const [state, setState] = useState<{ asked: string; tried: Tried<Effect> }>({ asked: '', tried: UNTRIED })
  const signed_in = usePhase().name === 'signed_in'
  const asked = JSON.stringify([signed_in ? command : null, again])
  useEffect(() => {
    let left = false
    const [body] = JSON.parse(asked) as [Command | null, boolean]
    if (body === null) return
    void dryRun<Effect>(body).then((reply) => {
      if (!left) setState({ asked, tried: { ...UNTRIED, ...reply } })
    })
    return () => {
      left = true
    }
  }, [asked])
  return state.asked === asked ? state.tried : UNTRIED
}
