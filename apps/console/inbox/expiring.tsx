import { Link } from '@tanstack/react-router'
import type { Waiting } from '../api/types.ts'
import { GateLink, OperationLink } from '../values/links.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { tExpiring } from '../words/frame/inbox-parts.ts'

export type Expiring = Waiting['expiring'][number]

type Drifted = Waiting['failures'][number]

/** Something that expires soon: its name as a link, when, and the effect. Or an operation that drift has paused. */
export const ExpiringLine = ({ line }: { line: Expiring | Drifted }) =>
  'kind' in line ? <Deadline line={line} /> : <Drift line={line} />

const Drift = ({ line: { operation_id, operation_title, waiting_since } }: { line: Drifted }) => (
  <>
    <ShapeIcon shape="bars" tone="wait" />
    <OperationLink id={operation_id} data-row="" className="font-semibold wrap-anywhere">
      {operation_title}
    </OperationLink>
    <span>{tExpiring.drifted}</span>
    <span className="ml-auto text-muted">
      <TimeText at={waiting_since} />
    </span>
  </>
)

const Deadline = ({ line }: { line: Expiring }) => {
  const { kind, operation_id, gate_id, title, expires_at, follows } = line
  const effect = tExpiring.follows[follows ?? kind] ?? tDecide.gate.timeout[follows ?? '']
  return (
    <>
      <ShapeIcon shape="clock" tone="wait" />
      <span>{tExpiring.kinds[kind]}</span>
      <ExpiringLink line={line} data-row="" className="font-semibold wrap-anywhere" />
      <span>
        <TimeText at={expires_at} />
        {effect ? `, ${tDecide.inbox.and_then(effect)}` : null}
      </span>
      {operation_id && gate_id ? (
        <span className="ml-auto text-muted">
          <OperationLink id={operation_id}>{title}</OperationLink>
        </span>
      ) : null}
    </>
  )
}

type ExpiringLinkProps = { line: Expiring; className: string; 'data-row'?: '' }
export const ExpiringLink = ({ line, ...rest }: ExpiringLinkProps) => {
  const { operation_id, plan_id, gate_id, title, question } = line
  if (operation_id === null)
    return (
      <Link to="/plans/$plan_id" params={{ plan_id: plan_id ?? '' }} search={{ tab: 'changes' }} {...rest}>
        {title}
      </Link>
    )
  if (gate_id === null)
    return (
      <OperationLink id={operation_id} {...rest}>
        {title}
      </OperationLink>
    )
  return (
    <GateLink operation_id={operation_id} gate_id={gate_id} {...rest}>
      {question}
    </GateLink>
  )
}
