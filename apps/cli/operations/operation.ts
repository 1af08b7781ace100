import { OPERATION_STATUSES } from '../../shared/contracts/operations/graph.ts'
import { INTENT_KINDS } from '../../shared/contracts/operations/intents.ts'
import type { LogPage, NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type { Operation, OperationGraph, OperationSummary } from '../../shared/contracts/operations/operations.ts'
import { type Command, type Context, needed, opOption, text, wholeId } from '../command.ts'
import { withQuery } from '../session/api.ts'
import { harmless, minute, second, short, word, zoned } from '../terminal/output.ts'

const OP = opOption('node')

export const operationId = (context: Context, given: string): Promise<string> =>
  wholeId<OperationSummary>(context, given, '/api/v1/operations', ({ operation_id }) => operation_id)

export const readOperation = async (context: Context, given: string): Promise<Operation> =>
  context.api.get(`/api/v1/operations/${await operationId(context, given)}`)

/** Operations: their state, progress, nodes and logs. */
export const operationCommands: Command[] = [
  {
    name: 'op list',
    about: 'Lists operations, the newest first.',
    examples: ['op list', 'op list --status running --watch', 'op list --requester me --on eu1-web-01'],
    options: {
      status: { type: 'string', choices: OPERATION_STATUSES, about: 'operations of this status only' },
      kind: { type: 'string', choices: INTENT_KINDS, about: 'operations of this kind only' },
      requester: { type: 'string', value: 'NAME', about: 'who requested them; me: yourself' },
      environment: { type: 'string', value: 'NAME', about: 'operations of this environment only' },
      on: { type: 'string', value: 'RESOURCE', about: 'operations that concern this resource' },
    },
    run: async ({ api, out, all }, _, values) =>
      out.list(
        await api.list<OperationSummary>(
          '/api/v1/operations',
          {
            ...{ status: text(values, 'status'), kind: text(values, 'kind'), requester: text(values, 'requester') },
            ...{ environment: text(values, 'environment'), resource_id: text(values, 'on') },
          },
          all,
        ),
        'operation_id',
        [
          ['id', ({ operation_id }) => short(operation_id)],
          ['status', ({ status }) => word(status)],
          ['title', ({ title }) => title],
          ['done', ({ progress }) => `${progress.done}/${progress.total}`],
          ['gates', ({ open_gates }) => open_gates || ''],
          ['by', ({ requester }) => requester.name],
          [zoned('created'), ({ created_at }) => minute(created_at)],
        ],
      ),
  },
  {
    name: 'op show',
    takes: 'OPERATION',
    about: 'Shows one operation: its progress and what it waits for.',
    examples: ['op show 77b0aa'],
    run: async (context, [given = '']) =>
      context.out.one(await readOperation(context, given), 'operation_id', operationLines),
  },
  {
    name: 'op nodes',
    takes: 'OPERATION',
    about: 'Lists the nodes of an operation with their states, failed ones first.',
    examples: ['op nodes 77b0aa', 'op nodes 77b0aa --watch'],
    run: async (context, [given = '']) => {
      const path = `/api/v1/operations/${await operationId(context, given)}/nodes`
      context.out.list(await context.api.list<NodeSummary>(path, { failed_first: 'true' }, context.all), 'node_id', [
        ['node', ({ node_id }) => node_id],
        ['state', ({ state }) => word(state)],
        ['attempt', ({ attempt }) => attempt],
        ['error', ({ error_message }) => error_message],
      ])
    },
  },
  {
    name: 'op graph',
    takes: 'OPERATION',
    about: 'Shows the graph of an operation, the first nodes on top: states, dependencies and gates.',
    examples: ['op graph 77b0aa'],
    run: async (context, [given = '']) => {
      const path = `/api/v1/operations/${await operationId(context, given)}/graph?collapse=none`
      context.out.one(
        await context.api.get<OperationGraph>(path),
        ({ nodes }) => nodes.map(({ node_id }) => node_id).join('\n'),
        graphLines,
      )
    },
  },
  {
    name: 'op logs',
    takes: 'NODE',
    about: 'Prints the log of a node, of its newest attempt unless --attempt.',
    examples: ['op logs deploy-eu1-web-03 --op 77b0aa', 'op logs deploy-eu1-web-03 --op 77b0aa --attempt 2'],
    options: { ...OP, attempt: { type: 'string', value: 'N', about: 'the attempt to read' } },
    run: async (context, [node_id = ''], values) => {
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/nodes/${encodeURIComponent(node_id)}/logs`
      const { api, out } = context
      // Lines are printed as each page comes; other data is one list.
      const data: LogPage['lines'] | undefined = (out.format === 'table' || out.jsonl) && !out.selects ? undefined : []
      for (let after = 0; ; ) {
        const query = { attempt: text(values, 'attempt'), after_seq: String(after), limit: '1000' }
        const { lines, total_lines } = await api.get<LogPage>(withQuery(path, query))
        data?.push(...lines)
        if (!data) for (const line of lines) out.print(out.jsonl ? JSON.stringify(line) : lineOf(line))
        after = lines.at(-1)?.seq ?? total_lines
        if (after >= total_lines) return data && out.list(data, 'seq', [])
      }
    },
  },
]

const lineOf = ({ time, level, text: line }: LogPage['lines'][number]): string =>
  harmless(`${second(time).slice(11)} ${level.padEnd(5)} ${line}`)

/** Nodes in an order in which they can run, as the server lists them. */
const graphLines = ({ nodes, gates }: OperationGraph): string[] => [
  ...nodes.map(({ node_id, state, depends_on, join, gates: guards, held_by_patch }) =>
    [
      `${word(state).padEnd(9)}   ${node_id}`,
      depends_on.length > 0 ? `after ${join === 'any' ? 'any of ' : ''}${depends_on.join(', ')}` : '',
      guards.length > 0 ? `behind ${guards.join(', ')}` : '',
      held_by_patch ? 'held by a patch' : '',
    ]
      .filter(Boolean)
      .join('   '),
  ),
  ...gates.map(({ gate_id, state, question }) => `${word(state).padEnd(9)}   gate ${gate_id}   ${question}`),
]

export const operationLines = ({
  operation_id,
  title,
  status,
  progress,
  blocked_on,
  open_gates,
}: Operation): string[] => [
  `${word(status)}   ${title}   operation ${operation_id}`,
  `  ${progress.done} of ${progress.total} nodes done, ${progress.running} running, ${progress.failed} failed`,
  ...blocked_on.map(({ message }) => `  waits: ${message}`),
  ...open_gates
    .filter(({ status: gate }) => gate === 'waiting')
    .map(({ gate_id }) => `Next: signalbox gate show ${gate_id} --op ${short(operation_id)}`),
]
