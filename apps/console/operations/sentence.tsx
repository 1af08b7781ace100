import type { Operation } from '../api/types.ts'
import { duration, shown } from '../kit/format.ts'
import { BlockedOn } from '../values/blocked.tsx'
import { GateLink, NodeLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText, useTimeWords } from '../values/time.tsx'
import { quoted } from '../words/frame/language.ts'
import { tOperation } from '../words/operation.ts'

/** The state of the operation and whether it needs a person, in one sentence, followed by pending commands. */
export const OperationSentence = ({ operation }: { operation: Operation }) => (
  <div className="flex flex-col gap-1" aria-live="polite">
    <p className="max-w-text">
      <Sentence operation={operation} />
      <Since operation={operation} />
    </p>
    <Why operation={operation} />
    {operation.pending_commands.map((command) => (
      <p key={command.command_id} className="flex items-center gap-1.5 text-table text-muted">
        <ShapeIcon shape="clock" tone="idle" size={14} />
        {tOperation.operation.pending(tOperation.operation.kind(command.kind))},{' '}
        <TimeText at={command.accepted_at} form="clock" />
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

/** A person's command that led to this state; null if the system caused it. */
function steeredInto({ status, steering, pause_reason, end_reason }: Operation): Operation['steering'] {
  if (steering === null) return null
  const paused = (status === 'paused' || status === 'pausing') && pause_reason === 'operator'
  const cancelled = status === 'cancelling' || (status === 'cancelled' && end_reason === 'cancelled')
  return (paused && steering.kind === 'pause') || (cancelled && steering.kind === 'cancel') ? steering : null
}

/** The reason for the state: the person's words, otherwise the system's reason. */
const Why = ({ operation }: { operation: Operation }) => {
  const given = steeredInto(operation)?.reason
  const code = operation.ended_at === null ? operation.pause_reason : operation.end_reason
  const text = given ? quoted(shown(given)) : code === null ? undefined : tOperation.operation.system_reason[code]
  return text === undefined ? null : <p className="max-w-text text-muted wrap-anywhere">{text}</p>
}

const Blocked = ({ by }: { by: Operation['blocked_on'] }) => (
  <>
    {tOperation.operation.sentence.blocked} <BlockedOn by={by} />
  </>
)

/** What keeps an operation from coming to rest, or from running once it is resumed. */
const HOLDING = new Set(['engine', 'failed_node', 'outcome_unknown', 'catalog', 'executor'])

const Sentence = ({ operation }: { operation: Operation }): React.ReactNode => {
  const words = tOperation.operation.sentence
  const timeWords = useTimeWords()
  const steering = steeredInto(operation)
  const by = steering === null ? '' : words.by(nameOf(steering.actor), timeWords(steering.accepted_at))
  const { status, progress, blocked_on, open_gates } = operation
  const held = blocked_on.filter(({ kind }) => HOLDING.has(kind))
  const holding =
    held.length > 0 ? (
      <>
        {' '}
        <Blocked by={held} />
      </>
    ) : null
  const took =
    operation.started_at && operation.ended_at
      ? duration(Date.parse(operation.ended_at) - Date.parse(operation.started_at))
      : ''
  switch (status) {
    case 'queued':
      return blocked_on[0] ? <Blocked by={blocked_on.slice(0, 1)} /> : words.queued
    case 'running': {
      const unbegun = blocked_on.filter(({ kind }) => kind === 'executor')
      return (
        <>
          {words.running(progress.running)} {unbegun.length > 0 ? <Blocked by={unbegun} /> : null}
        </>
      )
    }
    case 'blocked': {
      const gate = open_gates[0]
      if (gate !== undefined && blocked_on.every(({ kind }) => kind === 'gate'))
        return (
          <>
            {words.waiting_gate}{' '}
            <GateLink operation_id={operation.operation_id} gate_id={gate.gate_id}>
              {gate.question}
            </GateLink>
            {open_gates.length > 1 ? ` ${words.more_gates(open_gates.length - 1)}` : null}
          </>
        )
      const failed = blocked_on.find(({ kind }) => kind === 'failed_node' || kind === 'outcome_unknown')
      if (failed !== undefined)
        return (
          <>
            {words.waiting_failed}{' '}
            <NodeLink operation_id={operation.operation_id} node_id={failed.id} tab="logs">
              <span lang="en">{shown(failed.message)}</span>
            </NodeLink>
          </>
        )
      return <Blocked by={blocked_on} />
    }
    case 'pausing':
    case 'cancelling':
      return (
        <>
          {words[status](progress.running, by)}
          {holding}
        </>
      )
    case 'succeeded':
    case 'succeeded_with_exceptions':
      return words[status](took)
    case 'cancelled':
      return words.cancelled(by)
    case 'failed':
    case 'timed_out':
      return words[status]
    default:
      return (
        <>
          {words.paused(by)}
          {holding}
        </>
      )
  }
}
