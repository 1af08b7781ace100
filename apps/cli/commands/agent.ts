import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Value } from 'typebox/value'
import type { AgentView } from '../../shared/contracts/engine/agents.ts'
import type { Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { paint } from '../../shared/data/print.ts'
import { carryOut, removeLeft } from '../agent/attempt.ts'
import { type AgentFile, readAgentFile } from '../agent/tools/file.ts'
import { keyWords } from '../agent/tools/seal.ts'
import { type Command, type Context, needed, readDocument, text } from '../command.ts'
import { CliError, EXIT, type ExitCode, usageError } from '../errors.ts'
import { load } from '../operations/pack.ts'
import { minute, word } from '../terminal/output.ts'
import { versionOfClient } from '../version.ts'

const LONGEST_WAIT_MS = 30_000
/** How long a request for work waits, over all pools. */
const WAIT_S = 5
const SWEEP_MS = 60_000
/** Tells this process from another one that uses its name. */
const INSTANCE = randomUUID()
/** On a busy network it still gets through; a supervisor waits longer than this before it kills. */
const LAST_WORD_MS = 10_000

const proveIt: Command['run'] = async ({ out }, _, values): Promise<ExitCode> => {
  const { ConformanceFile, proveAgent } = await load()
  const path = needed(values, 'jobs')
  const command = needed(values, 'exec')
  const file = readDocument(path)
  const [fault] = Value.Errors(ConformanceFile, file)
  if (fault)
    throw usageError(`${path}${fault.instancePath}: ${fault.message}.`, 'See: signalbox pack schema agent-conformance')
  const concurrency = Number(text(values, 'concurrency') ?? '1')
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 100)
    throw usageError('--concurrency takes a number from 1 to 100.')
  const proofs = await proveAgent({
    ...{ file: file as never, command, concurrency, endpoint: text(values, 'endpoint'), nats: text(values, 'nats') },
    only: text(values, 'only')?.split(','),
    told: ({ id, says, broken }) => {
      out.print(`${broken.length === 0 ? paint('ok    ', 'green') : paint('broken', 'red')} ${id}: ${says}`)
      for (const sentence of broken) out.print(`       The agent ${sentence}.`)
    },
  })
  const broken = proofs.filter((proof) => proof.broken.length > 0).length
  out.note(`Rules kept: ${proofs.length - broken}, broken: ${broken}.`)
  return broken === 0 && proofs.length > 0 ? EXIT.done : EXIT.failed
}

/** The runner: carries out the work of its pools on the machine that has the tools and their credentials. */
export const agentCommands: Command[] = [
  {
    name: 'agent',
    about:
      'Takes work from its pools and runs it until SIGTERM: it then finishes its current work; a second SIGTERM stops that too.',
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
      let signals = 0
      const onSignal = () => {
        signals += 1
        if (signals > 1) kill.abort()
        stop.abort()
        context.out.note(kill.signal.aborted ? 'Stopping the work.' : 'Taking no more work; finishing current work.')
      }
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal)
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
    },
  },
  {
    name: 'agent list',
    about: 'Lists the agents that ask for work: their pools, last sign of life and current work.',
    examples: ['agent list', 'agent list --select "items[status=\'silent\'].agent"'],
    run: async ({ api, out }) =>
      out.list((await api.get<{ items: AgentView[] }>('/api/v1/agents')).items, 'agent', [
        ['agent', ({ agent, instances }) => (instances ? `${agent} (${instances} processes use this name)` : agent)],
        ['status', ({ status }) => word(status)],
        ['pools', ({ pools }) => pools.join(', ')],
        [
          'labels',
          ({ labels }) =>
            Object.entries(labels)
              .map((pair) => pair.join('='))
              .join(', '),
        ],
        ['version', ({ version }) => version],
        ['at once', ({ concurrency }) => concurrency],
        ['seen', ({ seen_at }) => minute(seen_at)],
        ['runs', ({ work, works }) => worksOf(work, works)],
      ]),
  },
  {
    name: 'agent conformance',
    about: 'Proves an agent of your own against the protocol: claim, heartbeats, logs, cancel, loss, drain. No server.',
    examples: [
      'agent conformance --jobs conformance.yaml --exec "my-agent"',
      'agent conformance --jobs conformance.yaml --exec "my-agent" --nats nats://127.0.0.1:4222',
    ],
    options: {
      jobs: {
        type: 'string',
        value: 'FILE',
        about: 'three jobs of the agent (signalbox pack schema agent-conformance)',
      },
      exec: { type: 'string', value: 'COMMAND', about: 'starts the agent; a shell reads it' },
      endpoint: { type: 'string', value: 'URL', about: 'where the agent listens for work, if it does not ask for it' },
      nats: { type: 'string', value: 'URL', about: 'the NATS server with JetStream whose stream the agent reads' },
      concurrency: { type: 'string', value: 'N', about: 'how many pieces of work it does at once (1)' },
      only: { type: 'string', value: 'CHECKS', about: 'only these checks, by comma: claim,cancel' },
    },
    run: proveIt,
  },
]

const worksOf = (work: AgentView['work'], all: number): string =>
  [
    ...work.map(({ operation_id, node_id }) => `${node_id} of ${operation_id.slice(-6)}`),
    ...(all > work.length ? [`${all - work.length} not visible to you`] : []),
  ].join(', ')

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
    labels,
    wait_s: Math.max(1, Math.floor(WAIT_S / pools.length)),
    agent: { ...about, ...(leaves && { leaves }) },
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
