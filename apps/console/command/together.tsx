import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { State } from '../../shared/contracts/client/status.ts'
import { type Command, commandSender, dryRun } from '../api/commands.ts'
import { usePhase } from '../api/hooks.ts'
import { ProblemText } from '../ui/failure.tsx'
import { tCommand } from '../words/operations/command.ts'
import { type Result, sendEach } from './each.ts'
import { keepRecorded, type Tried, UNTRIED } from './send.ts'

/**
 * Commands sent together, each with its own key and answer. One that was not judged, or whose answer is missing, stops
 * the rest; it is sent again with the same key. Afterwards the reads of these nouns are repeated.
 */
export const useEach = (nouns: readonly string[]) => {
  const client = useQueryClient()
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map())
  const [sending, setSending] = useState(false)
  const [stale, setStale] = useState(false)
  /** A second press before the dialog redraws must not send again. */
  const busy = useRef(false)
  const [sender] = useState(commandSender)
  const tell = (key: string, result: Result) => setResults((before) => new Map(before).set(key, result))

  const sendOne = async ([key, command]: readonly [string, Command]): Promise<'on' | 'stop'> => {
    tell(key, { state: 'sending' })
    const outcome = await sender<{ status: State }>(command)
    if (outcome.kind === 'applied' || outcome.kind === 'accepted') {
      const recorded = outcome.kind === 'accepted'
      if (recorded) keepRecorded(command.path, outcome.reply)
      tell(key, { state: 'done', status: outcome.reply.status, recorded })
      return 'on'
    }
    const { kind, problem } = outcome
    if (problem.code === 'reauth_required') setStale(true)
    tell(key, { state: kind, problem })
    return kind === 'refused' ? 'on' : 'stop'
  }

  const send = async (commands: readonly (readonly [string, Command])[]) => {
    if (busy.current) return
    busy.current = true
    setSending(true)
    setStale(false)
    try {
      await sendEach(commands, sendOne)
    } finally {
      busy.current = false
      setSending(false)
      for (const noun of nouns) void client.invalidateQueries({ queryKey: [noun] })
    }
  }
  return { results, sending, stale, send, confirmed: () => setStale(false), begun: sending || results.size > 0 }
}

type Dry<Effect> = ReadonlyMap<string, Tried<Effect>>
type Dried<Effect> = { asked: string; tried: Dry<Effect> }

/** The server's dry runs of several commands, as they arrive; repeated when `again` flips, and after a new sign-in. */
export const useDryRuns = <Effect,>(commands: readonly (readonly [string, Command])[], again: boolean): Dry<Effect> => {
  const [state, setState] = useState<Dried<Effect>>({ asked: '', tried: new Map() })
  const signed_in = usePhase().name === 'signed_in'
  const asked = JSON.stringify([signed_in ? commands : [], again])
  useEffect(() => {
    let left = false
    const [all] = JSON.parse(asked) as [[string, Command][], boolean]
    void sendEach(all, async ([key, command]) => {
      const reply = await dryRun<Effect>(command)
      if (left) return 'stop'
      setState((before) => {
        const known = before.asked === asked ? before.tried : new Map<string, Tried<Effect>>()
        return { asked, tried: new Map(known).set(key, { ...UNTRIED, ...reply }) }
      })
      return 'on'
    })
    return () => {
      left = true
    }
  }, [asked])
  return state.asked === asked ? state.tried : new Map()
}

/** Why a command has no effect yet; `held` says so if it is to be sent again. */
export const Unsettled = ({ result, held }: { result: Exclude<Result, { state: 'done' }>; held: string }) => {
  if (result.state === 'sending') return <span className="text-muted">{tCommand.sending}</span>
  const { state, problem } = result
  // The field for the password, below, says the rest.
  if (state === 'held' && problem.code === 'reauth_required') return <span className="text-muted">{held}</span>
  return (
    <div className="basis-full">
      <p className="font-medium">
        {state === 'held' ? held : state === 'unknown' ? tCommand.unknown : tCommand.not_possible}
      </p>
      <ProblemText problem={problem} />
    </div>
  )
}
