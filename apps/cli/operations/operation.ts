import { setTimeout as delay } from 'node:timers/promises'
import { operationLook } from '../../shared/contracts/client/status.ts'
import { OPERATION_STATUSES } from '../../shared/contracts/operations/graph.ts'
import type { LogPage } from '../../shared/contracts/operations/logs.ts'
import type { InterventionReply, NodeReply, NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type {
  Operation,
  OperationGraph,
  OperationReply,
  OperationSummary,
} from '../../shared/contracts/operations/operations.ts'
import { type Command, type Context, needed, readDocument, text, type Values, wholeId } from '../command.ts'
import { EXIT, type ExitCode, usageError } from '../errors.ts'
import { withQuery } from '../session/api.ts'
import { confirm } from '../terminal/ask.ts'
import { harmless, minute, moment, second, short, word, zoned } from '../terminal/output.ts'
import { watch } from './watch.ts'

const ENDS: Record<string, ExitCode> = {
  succeeded: EXIT.done,
  succeeded_with_exceptions: EXIT.done,
  failed: EXIT.failed,
  timed_out: EXIT.failed,
  cancelled: EXIT.cancelled,
}
const WANTED = ['ended', 'succeeded', 'waiting']
const LOOK_MS = 1000
const STRICT = { strict: { type: 'boolean', about: 'exit 5 if the operation ends with tolerated failures' } } as const
const OP = { op: { type: 'string', value: 'OPERATION', about: 'the operation of the node' } } as const

export const operationId = (context: Context, given: string): Promise<string> =>
  wholeId<OperationSummary>(context, given, '/api/v1/operations', ({ operation_id }) => operation_id)

const read = async (context: Context, given: string): Promise<Operation> =>
  context.api.get(`/api/v1/operations/${await operationId(context, given)}`)

/** A command on a running operation: asks, sends, shows the status that it has then. */
const steering = (verb: 'pause' | 'resume' | 'cancel', about: string, options: Command['options'] = {}): Command => ({
  name: `op ${verb}`,
  takes: 'OPERATION',
  about,
  options: { reason: { type: 'string', value: 'TEXT', about: 'why; recorded' }, ...options },
  run: async (context, [given = ''], values) => {
    const reason = needed(values, 'reason')
    const { operation_id, title } = await read(context, given)
    if (!context.yes && !context.dry_run) await confirm(`${verb} "${title}"?`)
    const mode = text(values, 'mode')
    const body = {
      reason,
      ...(mode !== undefined && { mode }),
      ...(values['acknowledge-drift'] === true && { acknowledge_drift: true }),
      ...(context.dry_run && { dry_run: true }),
    }
    const reply = await context.api.post<OperationReply & { effect?: unknown }>(
      `/api/v1/operations/${operation_id}/${verb}`,
      body,
    )
    context.out.one(
      reply,
      () => (context.dry_run ? [`Would be: ${JSON.stringify(reply.effect)}`] : operationLines(reply)),
      () => operation_id,
    )
  },
})

/** Running operations: look, wait, steer. */
export const operationCommands: Command[] = [
  {
    name: 'op list',
    about: 'Operations, the newest first.',
    options: { status: { type: 'string', choices: OPERATION_STATUSES, about: 'operations of this status only' } },
    run: async ({ api, out, all }, _, values) =>
      out.list(
        await api.list<OperationSummary>('/api/v1/operations', { status: text(values, 'status') }, all),
        [
          ['id', ({ operation_id }) => short(operation_id)],
          ['status', ({ status }) => word(status)],
          ['title', ({ title }) => title],
          ['done', ({ progress }) => `${progress.done}/${progress.total}`],
          ['gates', ({ open_gates }) => open_gates || ''],
          ['by', ({ requester }) => requester.name],
          [zoned('created'), ({ created_at }) => minute(created_at)],
        ],
        ({ operation_id }) => operation_id,
      ),
  },
  {
    name: 'op show',
    takes: 'OPERATION',
    about: 'One operation: how far it is and what it waits for.',
    run: async (context, [given = '']) =>
      context.out.one(await read(context, given), operationLines, ({ operation_id }) => operation_id),
  },
  {
    name: 'op nodes',
    takes: 'OPERATION',
    about: 'Its nodes with their states; failed ones first.',
    run: async (context, [given = '']) => {
      const path = `/api/v1/operations/${await operationId(context, given)}/nodes`
      context.out.list(
        await context.api.list<NodeSummary>(path, { failed_first: 'true' }, context.all),
        [
          ['node', ({ node_id }) => node_id],
          ['state', ({ state }) => word(state)],
          ['attempt', ({ attempt }) => attempt],
          ['error', ({ error_message }) => error_message],
        ],
        ({ node_id }) => node_id,
      )
    },
  },
  {
    name: 'op graph',
    takes: 'OPERATION',
    about: 'Its graph, what comes first on top: each node with its state, what it waits for and its gates.',
    run: async (context, [given = '']) => {
      const path = `/api/v1/operations/${await operationId(context, given)}/graph?collapse=none`
      context.out.one(await context.api.get<OperationGraph>(path), graphLines, ({ nodes }) =>
        nodes.map(({ node_id }) => node_id).join('\n'),
      )
    },
  },
  {
    name: 'op watch',
    takes: 'OPERATION',
    about:
      'Until it ends: at a terminal a table that is drawn over, else one line for each thing that happens. The exit code tells how it ended.',
    options: STRICT,
    run: async (context, [given = ''], values) => {
      const id = await operationId(context, given)
      const operation = await watch(context, id, ({ status }) => status in ENDS)
      if (operation) return ended(context, operation, values.strict === true)
      context.out.note(`It goes on. Watch again: signalbox op watch ${short(id)}`)
      return EXIT.interrupted
    },
  },
  {
    name: 'op wait',
    takes: 'OPERATION',
    about:
      'Waits for its end (--for ended, succeeded) or for a person (--for waiting). Any end ends it; a person who is needed too, with exit code 4, unless --through-gates.',
    options: {
      ...STRICT,
      for: { type: 'string', choices: WANTED, about: 'the state to wait for' },
      timeout: { type: 'string', value: 'DURATION', about: 'give up after this time, such as 10m' },
      'through-gates': { type: 'boolean', about: 'keep waiting while a person must decide' },
    },
    run: async (context, [given = ''], values) => {
      const wanted = text(values, 'for') ?? 'ended'
      const id = await operationId(context, given)
      const until = Date.now() + spanOf(text(values, 'timeout') ?? '30m')
      for (;;) {
        const operation = await context.api.get<Operation>(`/api/v1/operations/${id}`)
        if (operation.status in ENDS) return ended(context, operation, values.strict === true)
        const waits = personNeeded(operation, values['through-gates'] === true)
        if (waits !== undefined) {
          context.out.print(`${word('waiting')}   ${waits}`)
          return wanted === 'waiting' ? EXIT.done : EXIT.person
        }
        if (Date.now() > until) {
          context.out.note(`It still is ${operation.status}.`)
          return EXIT.waited
        }
        await delay(LOOK_MS)
      }
    },
  },
  {
    name: 'op logs',
    takes: 'NODE',
    about: 'The log of a node, of its newest attempt unless --attempt.',
    options: { ...OP, attempt: { type: 'string', value: 'N', about: 'the attempt to read' } },
    run: async (context, [node_id = ''], values) => {
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/nodes/${encodeURIComponent(node_id)}/logs`
      for (let after = 0; ; ) {
        const query = { attempt: text(values, 'attempt'), after_seq: String(after), limit: '1000' }
        const { lines, total_lines } = await context.api.get<LogPage>(withQuery(path, query))
        for (const { time, level, text: line } of lines)
          context.out.print(harmless(`${second(time).slice(11)} ${level.padEnd(5)} ${line}`))
        after = lines.at(-1)?.seq ?? total_lines
        if (after >= total_lines) return
      }
    },
  },
  steering('pause', 'Nothing new starts from the moment it is accepted.'),
  steering('resume', 'Goes on; --acknowledge-drift takes the new values of changed targets.', {
    'acknowledge-drift': { type: 'boolean', about: 'resume although the targets have changed' },
  }),
  steering('cancel', 'Ends it: --mode graceful (default), compensate or force.', {
    mode: { type: 'string', choices: ['graceful', 'compensate', 'force'], about: 'how to cancel' },
  }),
  {
    name: 'op retry',
    takes: 'NODE',
    about: 'Runs a node again, and what depends on it unless --scope node.',
    options: {
      ...OP,
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      scope: { type: 'string', choices: ['node', 'downstream'], about: 'what to run again' },
    },
    run: async (context, [node_id = ''], values) => {
      const { api, out, yes, dry_run } = context
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/nodes/${encodeURIComponent(node_id)}/retry`
      const scope = text(values, 'scope')
      const body = { reason: needed(values, 'reason'), ...(scope !== undefined && { scope }) }
      const { effect } = await api.post<{ effect: { reset_cone?: string[] } }>(path, { ...body, dry_run: true })
      out.note(`Runs again: ${(effect.reset_cone ?? [node_id]).join(', ')}`)
      if (dry_run) return
      if (!yes) await confirm('Retry?')
      out.one(
        await api.post<NodeReply>(path, body),
        ({ state }) => [`${word(state)}   ${node_id}`],
        () => node_id,
      )
    },
  },
  {
    name: 'op intervene',
    takes: 'NODE',
    about:
      'States what counts as the end of a node: --type skip | mark_succeeded (--note, --outputs FILE) | mark_failed (--message) | mark_compensated (--note).',
    options: {
      ...OP,
      type: { type: 'string', about: 'the kind of intervention' },
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      ticket: { type: 'string', about: 'the ticket that explains it' },
      note: { type: 'string', value: 'TEXT', about: 'what you saw' },
      message: { type: 'string', value: 'TEXT', about: 'the error to record' },
      outputs: { type: 'string', value: 'JSON', about: 'the outputs of the node' },
    },
    run: async (context, [node_id = ''], values) => {
      const { api, out, yes, dry_run } = context
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/interventions`
      const body = interventionOf(node_id, values)
      const { effect } = await api.post<{ effect: { from?: string } }>(path, { ...body, dry_run: true })
      out.note(`${body.type} of ${node_id}, which is ${effect.from ?? 'unknown'}: at best it ends with exceptions.`)
      if (dry_run) return
      if (!yes) await confirm('Intervene?')
      out.one(
        await api.post<InterventionReply>(path, body),
        ({ intervention: { status, gate_id } }) => [
          `${word(status)}   ${body.type} of ${node_id}`,
          ...(gate_id ? [`Next: somebody else: signalbox gate show ${gate_id} --op ${needed(values, 'op')}`] : []),
        ],
        ({ intervention: { intervention_id } }) => intervention_id,
      )
    },
  },
]

const interventionOf = (node_id: string, values: Values) => {
  const [note, message, ticket, outputs] = ['note', 'message', 'ticket', 'outputs'].map((name) => text(values, name))
  const payload = {
    ...(note !== undefined && { note }),
    ...(message !== undefined && { message }),
    ...(outputs !== undefined && { outputs: readDocument(outputs) }),
  }
  const type = needed(values, 'type')
  return { type, node_id, payload, reason: needed(values, 'reason'), ...(ticket !== undefined && { ticket }) }
}

/** What a person must do before it goes on: decide a gate, or see to a node that is held. */
const personNeeded = (operation: Operation, through_gates: boolean): string | undefined => {
  const { operation_id, open_gates, status, blocked_on } = operation
  const gate = open_gates.find((open) => open.status === 'waiting')
  if (gate && !through_gates) {
    const deadline = gate.deadline_at ? `, until ${moment(gate.deadline_at)}` : ''
    return `gate ${gate.gate_id}${deadline}     Next: signalbox gate show ${gate.gate_id} --op ${short(operation_id)}`
  }
  const others = blocked_on.filter(({ kind }) => kind !== 'gate')
  if (operationLook(status, others).word !== 'waiting_person') return undefined
  return `${others.map(({ message }) => message).join(' ')}     Next: signalbox op nodes ${short(operation_id)}`
}

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

const ended = ({ out }: Context, operation: Operation, strict: boolean): ExitCode => {
  const { status, title, end_reason } = operation
  out.print(`${word(status)}   ${title}${end_reason ? `   ${end_reason}` : ''}`)
  if (status !== 'succeeded_with_exceptions') return ENDS[status] ?? EXIT.error
  out.note('It ended with exceptions: somebody skipped, marked or overrode something.')
  return strict ? EXIT.failed : EXIT.done
}

const operationLines = ({ operation_id, title, status, progress, blocked_on, open_gates }: Operation): string[] => [
  `${word(status)}   ${title}   operation ${operation_id}`,
  `  ${progress.done} of ${progress.total} nodes done, ${progress.running} running, ${progress.failed} failed`,
  ...blocked_on.map(({ message }) => `  waits: ${message}`),
  ...open_gates
    .filter(({ status: gate }) => gate === 'waiting')
    .map(({ gate_id }) => `Next: signalbox gate show ${gate_id} --op ${short(operation_id)}`),
]

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 }

const spanOf = (given: string): number => {
  const [, count, unit = ''] = /^(\d+)([smh])$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (!Number.isFinite(ms)) throw usageError(`--timeout takes 90s, 30m or 2h, not ${JSON.stringify(given)}.`)
  return ms
}
