import { setTimeout as delay } from 'node:timers/promises'
import { operationLook } from '../../shared/contracts/client/status.ts'
import type { Operation } from '../../shared/contracts/operations/operations.ts'
import { type Command, type Context, text } from '../command.ts'
import { CliError, EXIT, type ExitCode, usageError } from '../errors.ts'
import { harmless, moment, short, word } from '../terminal/output.ts'
import { operationId } from './operation.ts'
import { isForPeople, watch } from './watch.ts'

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

/** Follows an operation until it ends or needs a person. */
export const followCommands: Command[] = [
  {
    name: 'op watch',
    takes: 'OPERATION',
    about: 'Follows an operation to its end, as a live table or line by line. The exit code tells how it ended.',
    examples: ['op watch 77b0aa', 'op watch 77b0aa --jsonl'],
    options: STRICT,
    repeats: 0,
    run: async (context, [given = ''], values) => {
      const id = await operationId(context, given)
      const operation = await watch(context, id, ({ status }) => status in ENDS)
      if (operation) {
        // Its data are the events, so scripts that read them get no other line.
        if (isForPeople(context)) context.out.print(endLine(operation))
        else context.out.note(endLine(operation))
        return codeOf(context, operation, values.strict === true)
      }
      context.out.note(`The operation continues. Watch again: signalbox op watch ${short(id)}`)
      return EXIT.interrupted
    },
  },
  {
    name: 'op wait',
    takes: 'OPERATION',
    about:
      'Waits for the end of an operation, or for a person (--for waiting). Exits 4 if a person is needed, unless --through-gates.',
    examples: [
      'op wait 77b0aa --timeout 10m',
      'op wait 77b0aa --for waiting',
      'op wait 77b0aa --through-gates --strict',
    ],
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
      for (let last: Operation | undefined; ; ) {
        const operation: Operation = await context.api
          .get<Operation>(`/api/v1/operations/${id}`)
          .catch(unlessLost(last))
        last = operation
        if (operation.status in ENDS) {
          context.out.one(operation, 'operation_id', () => [endLine(operation)])
          return codeOf(context, operation, values.strict === true)
        }
        const waits = personNeeded(operation, values['through-gates'] === true)
        if (waits !== undefined) {
          context.out.one(operation, 'operation_id', () => [`${word('waiting')}   ${harmless(waits)}`])
          return wanted === 'waiting' ? EXIT.done : EXIT.person
        }
        if (Date.now() > until) {
          context.out.note(`The operation is still ${operation.status}. Wait longer with --timeout.`)
          return EXIT.waited
        }
        await delay(LOOK_MS)
      }
    },
  },
]

/** What was last seen, while the connection is lost: the operation runs on. */
const unlessLost = (last: Operation | undefined) => (error: unknown) => {
  if (last && error instanceof CliError && error.passing) return last
  throw error
}

/** The step that a person must take before the operation continues: decide a gate, or attend to a held node. */
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

const endLine = (operation: Operation): string => {
  const { status, title, end_reason } = harmless(operation)
  return `${word(status)}   ${title}${end_reason ? `   ${end_reason}` : ''}`
}

const codeOf = ({ out }: Context, { status }: Operation, strict: boolean): ExitCode => {
  if (status !== 'succeeded_with_exceptions') return ENDS[status] ?? EXIT.error
  out.note('It ended with exceptions: a node was skipped, marked or overridden.')
  return strict ? EXIT.failed : EXIT.done
}

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 }

const spanOf = (given: string): number => {
  const [, count, unit = ''] = /^(\d+)([smh])$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (!Number.isFinite(ms)) throw usageError(`--timeout takes 90s, 30m or 2h, not ${JSON.stringify(given)}.`)
  return ms
}
