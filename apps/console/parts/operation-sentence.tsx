import { Link } from '@tanstack/react-router'
import { duration } from '../api/format.ts'
import type { Operation } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { ShapeIcon } from './status.tsx'
import { TimeText } from './time-text.tsx'

/** What is happening and whether it waits for somebody, in one sentence; pending commands behind it. */
export const OperationSentence = ({ operation }: { operation: Operation }) => (
  <div className="flex flex-col gap-1" aria-live="polite">
    <p className="max-w-text">
      {sentence(operation)}
      <Since operation={operation} />
    </p>
    {operation.pending_commands.map((command) => (
      <p key={command.command_id} className="flex items-center gap-1.5 text-table text-muted">
        <ShapeIcon shape="clock" tone="idle" size={14} />
        {t.operation.pending(command.kind.replaceAll('_', ' '))}, <TimeText at={command.accepted_at} form="clock" />
      </p>
    ))}
  </div>
)

const Since = ({ operation }: { operation: Operation }) => {
  const since = operation.status === 'blocked' ? operation.blocked_on[0]?.since : undefined
  return since === undefined ? null : (
    <span className="text-muted">
      {' '}
      <TimeText at={since} form="both" />
    </span>
  )
}

function sentence(operation: Operation): React.ReactNode {
  const words = t.operation.sentence
  const { status, progress, blocked_on, open_gates } = operation
  const took =
    operation.started_at && operation.ended_at
      ? duration(Date.parse(operation.ended_at) - Date.parse(operation.started_at))
      : ''
  switch (status) {
    case 'queued':
      return blocked_on[0] ? words.blocked(blocked_on[0].message) : words.queued
    case 'running':
      return words.running(progress.running)
    case 'blocked': {
      const gate = open_gates[0]
      if (gate !== undefined && blocked_on.every(({ kind }) => kind === 'gate'))
        return (
          <>
            {words.waiting_gate}{' '}
            <Link
              to="/operations/$operation_id/gates/$gate_id"
              params={{ operation_id: operation.operation_id, gate_id: gate.gate_id }}
            >
              {gate.question}
            </Link>
          </>
        )
      const failed = blocked_on.find(({ kind }) => kind === 'failed_node' || kind === 'outcome_unknown')
      if (failed !== undefined)
        return (
          <>
            {words.waiting_failed}{' '}
            <Link
              to="/operations/$operation_id/nodes/$node_id"
              params={{ operation_id: operation.operation_id, node_id: failed.id }}
              search={{ tab: 'logs' }}
            >
              {failed.message}
            </Link>
          </>
        )
      return words.blocked(blocked_on.map(({ message }) => message).join('; '))
    }
    case 'pausing':
      return words.pausing(progress.running)
    case 'cancelling':
      return words.cancelling(progress.running)
    case 'succeeded':
    case 'succeeded_with_exceptions':
      return words[status](took)
    case 'failed':
    case 'cancelled':
    case 'timed_out':
      return `${words[status]}${operation.end_reason ? ` ${operation.end_reason.replaceAll('_', ' ')}.` : ''}`
    default:
      return words.paused
  }
}
