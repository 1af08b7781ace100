import { NODE_INTERVENTIONS } from '../../shared/contracts/operations/graph.ts'
import type { InterventionReply, NodeReply } from '../../shared/contracts/operations/nodes.ts'
import type { OperationReply } from '../../shared/contracts/operations/operations.ts'
import { type Command, needed, numberOf, opOption, readDocument, text, type Values } from '../command.ts'
import { usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { word } from '../terminal/output.ts'
import { trialOf, withDryRun } from './gate.ts'
import { operationId, operationLines, readOperation } from './operation.ts'

const OP = opOption('node')

/** A command on a running operation: asks for confirmation, sends it and shows the resulting status. */
const steering = (verb: 'pause' | 'resume' | 'cancel', about: string, options: Command['options'] = {}): Command => ({
  name: `op ${verb}`,
  takes: 'OPERATION',
  about,
  examples: [`op ${verb} 77b0aa --reason 'change window moved'`, `op ${verb} 77b0aa --reason test --dry-run`],
  options: { reason: { type: 'string', value: 'TEXT', about: 'why; recorded' }, ...options },
  run: async (context, [given = ''], values) => {
    const reason = needed(values, 'reason')
    const { operation_id, title } = await readOperation(context, given)
    if (!context.yes && !context.dry_run) await confirm(`${verb} "${title}"?`)
    const body = { reason, mode: text(values, 'mode'), acknowledge_drift: values['acknowledge-drift'] }
    const path = `/api/v1/operations/${operation_id}/${verb}`
    const reply = await context.api.post<OperationReply & { effect?: unknown }>(path, withDryRun(context, body))
    context.out.one(
      reply,
      () => operation_id,
      () => (context.dry_run ? [`Would be: ${JSON.stringify(reply.effect)}`] : operationLines(reply)),
    )
  },
})

const KINDS = ['check', 'node', 'drift'] as const
/** The signal that the options describe: one of three kinds. */
const signalOf = (values: Values) => {
  const given = KINDS.filter((kind) => text(values, kind) !== undefined)
  if (given.length !== 1)
    throw usageError('Say what happened: one of --check, --node and --drift.', 'See: signalbox signal --help')
  const file = text(values, 'payload')
  const round = numberOf(values, 'round') ?? 1
  if (given[0] === 'check') {
    const [gate_id, verdict] = [needed(values, 'gate'), needed(values, 'check')]
    return { type: 'external_check_result', body: { gate_id, round, verdict, summary: text(values, 'summary') } }
  }
  if (given[0] === 'drift') return { type: 'catalog_drift', body: { resource_ids: needed(values, 'drift').split(',') } }
  const payload = file === undefined ? {} : { payload: readDocument(file) }
  return { type: 'node_signal', body: { name: needed(values, 'node'), ...payload } }
}

/** A message from a control plane to a running operation. */
const signalCommand: Command = {
  name: 'signal',
  takes: 'OPERATION',
  about: 'Reports an outside event to an operation, as a machine with the role controller.',
  examples: [
    "signal 77b0aa --check passed --gate go --summary 'the change is approved'",
    'signal 77b0aa --node eu1-web-01 --payload result.json',
    'signal 77b0aa --drift eu1-web-01,eu1-web-02',
  ],
  options: {
    check: { type: 'string', choices: ['running', 'passed', 'failed'], about: 'the verdict of an external check' },
    gate: { type: 'string', value: 'GATE', about: 'the gate of the check' },
    round: { type: 'string', value: 'N', about: 'the round of the gate; 1 unless said' },
    summary: { type: 'string', value: 'TEXT', about: 'what the check found; people read it at the gate' },
    node: { type: 'string', value: 'NAME', about: 'the signal that a node waits for' },
    payload: { type: 'string', value: 'FILE', about: 'the data for the node: a file of JSON or YAML' },
    drift: { type: 'string', value: 'RESOURCES', about: 'resources that have changed, by comma' },
    reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
  },
  run: async (context, [given = ''], values) => {
    const signal = withDryRun(context, { ...signalOf(values), reason: text(values, 'reason') })
    const path = `/api/v1/operations/${await operationId(context, given)}/signals`
    const { command } = await context.api.post<{ command?: { command_id: string; status: string } }>(path, signal)
    context.out.note(command ? `Sent: ${command.command_id}, ${word(command.status)}.` : 'It would be accepted.')
  },
}

export const steerCommands: Command[] = [
  signalCommand,
  steering('pause', 'Pauses an operation: no further node starts.'),
  steering('resume', 'Resumes an operation; --acknowledge-drift accepts the new values of changed targets.', {
    'acknowledge-drift': { type: 'boolean', about: 'resume although the targets have changed' },
  }),
  steering('cancel', 'Cancels an operation: --mode graceful (default), compensate or force.', {
    mode: { type: 'string', choices: ['graceful', 'compensate', 'force'], about: 'how to cancel' },
  }),
  {
    name: 'op retry',
    takes: 'NODE',
    about: 'Runs a node again, and what depends on it unless --scope node.',
    examples: ["op retry verify-us1-web-03 --op 77b0aa --reason 'host is back'"],
    options: {
      ...OP,
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      scope: { type: 'string', choices: ['node', 'downstream'], about: 'what to run again' },
    },
    run: async (context, [node_id = ''], values) => {
      const { api, out, yes, dry_run } = context
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/nodes/${encodeURIComponent(node_id)}/retry`
      const body = { reason: needed(values, 'reason'), scope: text(values, 'scope') }
      const effect = await trialOf<{ reset_cone?: string[] }>(context, path, body)
      if (effect) out.note(`Runs again: ${(effect.reset_cone ?? [node_id]).join(', ')}`)
      if (dry_run) return
      if (!yes) await confirm('Retry?')
      out.one(
        await api.post<NodeReply>(path, body),
        () => node_id,
        ({ state }) => [`${word(state)}   ${node_id}`],
      )
    },
  },
  {
    name: 'op intervene',
    takes: 'NODE',
    about:
      'Sets the outcome of a node by hand: --type skip, mark_succeeded (--note, --outputs FILE), mark_failed (--message) or mark_compensated (--note).',
    examples: ["op intervene verify-us1-web-03 --op 77b0aa --type skip --reason 'checked by hand'"],
    options: {
      ...OP,
      type: { type: 'string', choices: NODE_INTERVENTIONS, about: 'the kind of intervention' },
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      ticket: { type: 'string', about: 'the ticket that explains it' },
      note: { type: 'string', value: 'TEXT', about: 'what you saw' },
      message: { type: 'string', value: 'TEXT', about: 'the error to record' },
      outputs: { type: 'string', value: 'FILE', about: 'the outputs of the node: a file of JSON or YAML' },
    },
    run: async (context, [node_id = ''], values) => {
      const { api, out, yes, dry_run } = context
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/interventions`
      const body = interventionOf(node_id, values)
      const effect = await trialOf<{ from?: string }>(context, path, body)
      if (effect)
        out.note(
          `${body.type} on ${node_id}, which is ${effect.from ?? 'unknown'}. At best, the operation then ends with exceptions.`,
        )
      if (dry_run) return
      if (!yes) await confirm('Intervene?')
      out.one(
        await api.post<InterventionReply>(path, body),
        ({ intervention: { intervention_id } }) => intervention_id,
        ({ intervention: { status, gate_id } }) => [
          `${word(status)}   ${body.type} on ${node_id}`,
          ...(gate_id ? [`Next, by another person: signalbox gate show ${gate_id} --op ${needed(values, 'op')}`] : []),
        ],
      )
    },
  },
]

const interventionOf = (node_id: string, values: Values) => {
  const [note, message, ticket, outputs] = ['note', 'message', 'ticket', 'outputs'].map((name) => text(values, name))
  const payload = { note, message, outputs: outputs === undefined ? undefined : readDocument(outputs) }
  return { type: needed(values, 'type'), node_id, payload, reason: needed(values, 'reason'), ticket }
}
