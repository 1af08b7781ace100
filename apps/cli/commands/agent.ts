import { setTimeout as delay } from 'node:timers/promises'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import { carryOut } from '../agent/attempt.ts'
import { type AgentFile, readAgentFile } from '../agent/tools/file.ts'
import { type Command, type Context, needed } from '../command.ts'
import { CliError, EXIT, type ExitCode } from '../errors.ts'

const LONGEST_WAIT_MS = 30_000
const WAIT_S = 5

/** The runner: carries out the work of its pools where the tools and their credentials are. */
export const agentCommands: Command[] = [
  {
    name: 'agent',
    about: 'Takes the work of its pools and runs it, until SIGTERM: then it ends what it has; again: it stops that.',
    examples: ['agent --file /etc/signalbox/agent.yaml', 'agent --file agent.yaml --once'],
    options: {
      file: { type: 'string', value: 'FILE', about: 'what this agent may do' },
      once: { type: 'boolean', about: 'end after one piece of work' },
    },
    repeats: 0,
    run: async (context, _, values) => {
      const file = readAgentFile(needed(values, 'file'))
      const stop = new AbortController()
      const kill = new AbortController()
      const onSignal = () => {
        if (stop.signal.aborted) kill.abort()
        stop.abort()
        context.out.note(kill.signal.aborted ? 'Stopping the work.' : 'Taking no more work; ending what is begun.')
      }
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal)
      context.out.note(`Asking for work of ${file.pools.join(', ')}.`)
      try {
        const places = values.once === true ? 1 : (file.concurrency ?? 1)
        const taken = Array.from({ length: places }, () =>
          takeTurns(context, file, values.once === true, stop, kill.signal),
        )
        return await Promise.all(taken).then(() => EXIT.done as ExitCode)
      } finally {
        for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, onSignal)
      }
    },
  },
]

/** One place: asks each pool in turn, and carries out what it gets. A refused identity ends the agent. */
const takeTurns = async (
  { api, out }: Context,
  file: AgentFile,
  once: boolean,
  stop: AbortController,
  kill: AbortSignal,
): Promise<void> => {
  let wait = 1000
  for (let turn = 0; !stop.signal.aborted; turn += 1) {
    const pool = file.pools[turn % file.pools.length]
    try {
      const body = { labels: file.labels ?? {}, wait_s: WAIT_S }
      const answer = await api.send<Work | undefined>('POST', `/api/v1/pools/${pool}/work`, body)
      wait = 1000
      if (answer.status === 204 || !answer.body) continue
      await carryOut(file, answer.body, kill, (line) => out.note(line))
      if (once) return stop.abort()
    } catch (error) {
      if (!(error instanceof CliError) || !(error.passing || error.exit === EXIT.error)) {
        stop.abort()
        throw error
      }
      out.note(`${error.lines[0]?.split('. ')[0]}. Asking again in ${wait / 1000} s.`)
      await delay(wait, undefined, { signal: stop.signal }).catch(() => {})
      wait = Math.min(wait * 2, LONGEST_WAIT_MS)
    }
  }
}
