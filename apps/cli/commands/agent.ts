import type { AgentView } from '../../shared/contracts/engine/agents.ts'
import { paint } from '../../shared/data/print.ts'
import { type Command, needed, readDocument, text } from '../command.ts'
import { EXIT, type ExitCode, usageError } from '../errors.ts'
import { load } from '../operations/pack.ts'
import { minute, word } from '../terminal/output.ts'

const proveIt: Command['run'] = async ({ out }, _, values): Promise<ExitCode> => {
  const { ConformanceFile, proveAgent } = await load()
  const { Value } = await import('typebox/value')
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

/**
 * The runner: carries out the work of its pools on the machine that has the tools and their credentials. Its code is
 * half of the client and is loaded only here.
 */
export const agentCommands: Command[] = [
  {
    name: 'agent',
    about:
      'Takes work from its pools and runs it until SIGTERM: it then finishes its current work; another SIGTERM, over 2 s later, stops that too.',
    examples: ['agent --file /etc/signalbox/agent.yaml', 'agent --file agent.yaml --once'],
    options: {
      file: { type: 'string', value: 'FILE', about: 'what this agent may do' },
      once: { type: 'boolean', about: 'end after one piece of work' },
    },
    repeats: 0,
    run: async (context, _, values) => (await import('../agent/turns.ts')).runAgent(context, values),
  },
  {
    name: 'agent doctor',
    about: 'Checks programs, credentials, sandbox, clock and server of an agent on this machine. Takes no work.',
    examples: ['agent doctor --file /etc/signalbox/agent.yaml'],
    options: { file: { type: 'string', value: 'FILE', about: 'the file of the agent' } },
    repeats: 0,
    run: async (context, _, values) => {
      const { readAgentFile } = await import('../agent/tools/file.ts')
      return (await import('../agent/doctor.ts')).examine(context, readAgentFile(needed(values, 'file')))
    },
  },
  {
    name: 'agent list',
    about: 'Lists the agents that ask for work: their pools, last sign of life and current work.',
    examples: ['agent list', `agent list --select '$[status="silent"].agent'`],
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
