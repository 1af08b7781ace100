import { useEffect, useReducer, useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { type Command, dryRun, type Outcome, sendCommand } from '../api/commands.ts'

type Phase = 'open' | 'sending' | 'accepted' | 'unknown'
type State = { phase: Phase; problem: Problem | null; accepted_at: string; checked: boolean }
type Step =
  | { type: 'checked' | 'sending' | 'password_confirmed' }
  | { type: 'accepted'; at: string }
  | { type: 'refused' | 'unknown'; problem: Problem | null }

const step = (state: State, event: Step): State => {
  switch (event.type) {
    case 'checked':
      return { ...state, checked: true }
    case 'sending':
      return { ...state, phase: 'sending', problem: null }
    case 'password_confirmed':
      return { ...state, problem: null }
    case 'accepted':
      return { ...state, phase: 'accepted', accepted_at: event.at }
    case 'refused':
      return { ...state, phase: 'open', problem: event.problem }
    case 'unknown':
      return { ...state, phase: 'unknown', problem: event.problem }
  }
}

/** Completes a command as it is sent; a problem is shown instead of an answer. */
export type Complete = (command: Command) => Promise<Command | Problem>
type Answers<Reply> = { done: (reply: Reply) => void; refused?: (problem: Problem) => void; close: () => void }

/** Sends a dialog's command, keeps its outcome. Repeats of a body keep its idempotency key, to take effect once. */
export const useCommand = <Reply>({ done, refused, close }: Answers<Reply>) => {
  const [state, tell] = useReducer(step, { phase: 'open', problem: null, accepted_at: '', checked: false })
  const sent = useRef<{ key: string; command: Command } | null>(null)
  /** The session ended during the last try, so the command was not judged; the same body is sent with the same key. */
  const unanswered = useRef(false)
  /** A second press before the dialog redraws must not send again. */
  const sending = useRef(false)

  const answered = (outcome: Outcome<Reply>) => {
    if (outcome.kind === 'applied') {
      done(outcome.reply)
      return close()
    }
    if (outcome.kind === 'accepted') {
      done(outcome.reply)
      return tell({ type: 'accepted', at: outcome.at })
    }
    unanswered.current = outcome.kind === 'refused' && outcome.problem.status === 401
    tell({ type: outcome.kind, problem: unanswered.current ? null : outcome.problem })
    if (outcome.kind === 'refused' && !unanswered.current) refused?.(outcome.problem)
  }

  /** Sends the command, with a signature if one is required, or repeats it after a missing answer. */
  const send = async (given: Command, complete: Complete = async () => given) => {
    if (sending.current) return
    sending.current = true
    tell({ type: 'sending' })
    try {
      const command = await complete(given)
      if ('body' in command) answered(await sendOnce(command as Command))
      else tell({ type: 'refused', problem: command })
    } finally {
      sending.current = false
    }
  }

  const sendOnce = (command: Command): Promise<Outcome<Reply>> => {
    if (state.phase !== 'unknown' || sent.current === null) {
      const same = JSON.stringify(sent.current?.command) === JSON.stringify(command)
      if (!(same && unanswered.current)) sent.current = { key: crypto.randomUUID(), command }
    }
    const { command: body, key } = sent.current ?? { command, key: crypto.randomUUID() }
    return sendCommand<Reply>(body, key)
  }
  return { ...state, send, tell }
}

type Tried<Effect> = { effect: Effect | null; problem: Problem | null }

/** The server's dry run of a command, for this body; repeated when `again` flips. */
export const useDryRun = <Effect>(command: Command | null, again: boolean): Tried<Effect> => {
  const [state, setState] = useState<Tried<Effect>>({ effect: null, problem: null })
  const asked = JSON.stringify([command, again])
  useEffect(() => {
    let left = false
    const [body] = JSON.parse(asked) as [Command | null, boolean]
    if (body === null) return
    void dryRun<Effect>(body).then((reply) => {
      if (left) return
      setState('effect' in reply ? { effect: reply.effect, problem: null } : { effect: null, problem: reply.problem })
    })
    return () => {
      left = true
    }
  }, [asked])
  return state
}
