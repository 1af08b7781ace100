import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { watchDoor } from '../../shared/run/door.ts'
import { type Context, needed, type Values } from '../command.ts'
import { CliError, EXIT, type ExitCode, usageError } from '../errors.ts'
import { versionOfClient } from '../version.ts'
import { carryOut, removeLeft } from './attempt.ts'
import { missingIn } from './doctor.ts'
import { type AgentFile, oddLabelsIn, readAgentFile } from './tools/file.ts'
import { startFault } from './tools/sandbox.ts'
import { keyLabel, keyWords } from './tools/seal.ts'

const LONGEST_WAIT_MS = 30_000
/** How long a request for work waits, over all pools. */
const WAIT_S = 5
const SWEEP_MS = 60_000
/** Tells this process from another one that uses its name. */
const INSTANCE = randomUUID()
/** A copy of the first signal comes within this time. */
const COPY_MS = 2000
/** On a busy network it still gets through; a supervisor waits longer than this before it kills. */
const LAST_WORD_MS = 10_000

/** Carries out the work of the file's pools until a signal ends it, or once. */
export const runAgent = async (context: Context, values: Values): Promise<ExitCode> => {
  const file = readAgentFile(needed(values, 'file'))
  const fault = startFault(file)
  if (fault !== undefined)
    throw usageError(`${values.file}/sandbox: ${fault}`, 'See: signalbox agent doctor --file FILE')
  for (const line of [...oddLabelsIn(file), ...missingIn(file)]) context.out.note(line)
  const stop = new AbortController()
  const kill = new AbortController()
  let first: number | undefined
  const onSignal = () => {
    const now = performance.now()
    first ??= now
    // A signal to the process group comes twice: directly, and from the process that started this one.
    if (now - first > COPY_MS) kill.abort()
    else if (now !== first) return
    stop.abort()
    context.out.note(kill.signal.aborted ? 'Stopping the work.' : 'Taking no more work; finishing current work.')
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal)
  // As after a kill -9 of this process itself: the tools end, but it can still say how.
  watchDoor(() => kill.abort())
  const sweepLeft = () => removeLeft(file, (line) => context.out.note(line))
  sweepLeft()
  const sweep = setInterval(sweepLeft, SWEEP_MS)
  if (file.tofu || file.kubernetes) context.out.note(keyWords(file))
  context.out.note(`Asking for work of ${file.pools.join(', ')}.`)
  try {
    let told: Promise<unknown> = Promise.resolve()
    stop.signal.addEventListener('abort', () => {
      told = ask(context, file, file.pools[0], 'draining').catch(() => {})
    })
    await takeTurns(context, file, values.once === true, stop, kill.signal)
    const left = told.then(() => ask(context, file, file.pools[0], 'gone')).catch(() => {})
    await Promise.race([left, delay(LAST_WORD_MS, undefined, { ref: false })])
    return EXIT.done
  } finally {
    clearInterval(sweep)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, onSignal)
  }
}

const nameOf = ({ name }: AgentFile): string =>
  name ??
  (hostname()
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 63) ||
    'agent')

/** Asks a pool for work; with `leaves` it only says that this agent takes no more. */
const ask = ({ api }: Context, file: AgentFile, pool = '', leaves?: 'draining' | 'gone') => {
  const { labels = {}, concurrency = 1, pools } = file
  const about = { name: nameOf(file), instance: INSTANCE, version: versionOfClient(), concurrency, pools }
  const body: WorkRequest = {
    labels: { ...labels, ...keyLabel(file) },
    wait_s: Math.max(1, Math.floor(WAIT_S / pools.length)),
    agent: { ...about, ...(file.sandbox && { sandbox: 'bwrap' as const }), ...(leaves && { leaves }) },
  }
  return api.send<Work | undefined>('POST', `/api/v1/pools/${pool}/work`, body)
}

/** The work as it is reached from here: over the connection by which it came. */
const fromHere = ({ api: { url } }: Context, work: Work): Work => ({
  ...work,
  results_url: `${url}/api/v1/execution-results`,
  artifacts_url: `${url}/api/v1/artifacts`,
})

/**
 * Asks the pools in turn while a place is free, by one request at a time, and runs what it gets. Returns once all of it
 * has ended. A refused identity ends the agent.
 */
const takeTurns = async (
  context: Context,
  file: AgentFile,
  once: boolean,
  stop: AbortController,
  kill: AbortSignal,
): Promise<void> => {
  const { out } = context
  const say = (line: string) => out.note(line)
  const pause = (ms: number) => delay(ms, undefined, { signal: stop.signal }).catch(() => {})
  const free = Array.from({ length: once ? 1 : (file.concurrency ?? 1) }, (_, at) => file.uids[at] ?? file.uid)
  const running = new Set<Promise<void>>()
  const run = async (work: Work, uid: AgentFile['uid']) => {
    const ended = await carryOut({ ...file, uid }, fromHere(context, work), kill, say).then(
      () => true,
      ({ message }: Error) => say(`${work.node_id}: ${message}`),
    )
    if (once) stop.abort()
    // An agent that cannot begin, such as on a full disk, must not take the work of the others.
    else if (!ended) await pause(LONGEST_WAIT_MS)
    free.push(uid)
  }
  let wait = 1000
  let warned = false
  const warnOf = (instances: string | null) => {
    if (instances === null || warned) return
    warned = true
    say(`${instances} agents use the name "${nameOf(file)}", and the list mixes them. Set "name" in the file of each.`)
  }
  try {
    // Agents that start together begin at different pools.
    for (let turn = Math.floor(Math.random() * file.pools.length); !stop.signal.aborted; turn += 1) {
      if (free.length === 0) await Promise.race(running)
      if (stop.signal.aborted) return
      try {
        const { status, headers, body } = await ask(context, file, file.pools[turn % file.pools.length])
        wait = 1000
        warnOf(headers.get('agent-instances'))
        if (status === 204 || !body) continue
        const work = run(body, free.shift())
        running.add(work)
        void work.finally(() => running.delete(work))
      } catch (error) {
        if (!(error instanceof CliError) || !(error.passing || error.exit === EXIT.error)) throw error
        say(`${error.lines[0]?.split('. ')[0]}. Asking again in ${wait / 1000} s.`)
        await pause(wait)
        wait = Math.min(wait * 2, LONGEST_WAIT_MS)
      }
    }
  } finally {
    stop.abort()
    // What runs finishes first, also if the identity was refused.
    await Promise.all(running)
  }
}
