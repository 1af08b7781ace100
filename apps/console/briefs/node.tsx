import { useQuery } from '@tanstack/react-query'
import { useTopic } from '../api/hooks.ts'
import type { Attempt, NodeDetail } from '../api/types.ts'
import { progressOf } from '../graph/progress.ts'
import { nodeQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { GateLink } from '../values/links.tsx'
import { Status } from '../values/status.tsx'
import { TargetRow } from '../values/target.tsx'
import { DurationText, TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { tOperation } from '../words/operation.ts'

type NodeFactsProps = { node: NodeDetail; attempt?: Attempt | undefined }

/** The facts of a node and of its newest (or the selected) attempt. */
export const NodeFacts = ({ node, attempt = newestAttempt(node) }: NodeFactsProps) => (
  <>
    {attempt?.error ? <ErrorCard error={attempt.error} /> : null}
    <dl className="facts">
      <TargetRow target_id={node.target_id} />
      {node.executor ? (
        <>
          <dt>{tOperation.node.executor}</dt>
          <dd className="mono">{node.executor}</dd>
        </>
      ) : null}
      {node.group_id ? (
        <>
          <dt>{tOperation.node.group}</dt>
          <dd>{node.group_id}</dd>
        </>
      ) : null}
      {attempt ? (
        <>
          <dt>{tOperation.nodes.attempt}</dt>
          <dd>{attempt.attempt}</dd>
          <dt>{tOperation.node.started}</dt>
          <dd>
            <TimeText at={attempt.started_at} form="both" />
          </dd>
          <dt>{tOperation.node.duration}</dt>
          <dd>
            <DurationText from={attempt.started_at} to={attempt.ended_at} />
          </dd>
          <Progress attempt={attempt} />
        </>
      ) : (
        <>
          <dt>{tOperation.nodes.attempt}</dt>
          <dd>{tOperation.node.no_attempt}</dd>
        </>
      )}
      {node.gates.map((gate) => (
        <div key={gate.gate_id} className="contents">
          <dt>{tDecide.gate.page}</dt>
          <dd className="flex flex-wrap items-center gap-2">
            <GateLink operation_id={node.operation_id} gate_id={gate.gate_id}>
              {gate.question}
            </GateLink>
            <Status state={gate.status} />
          </dd>
        </div>
      ))}
    </dl>
  </>
)

/** An attempt that has ended says how by its state and error. */
const Progress = ({ attempt: { ended_at, progress } }: { attempt: Attempt }) => {
  const message = ended_at === null ? progressOf(progress) : undefined
  return message === undefined ? null : (
    <>
      <dt>{tOperation.node.progress}</dt>
      <dd className="wrap-anywhere" aria-live="polite">
        <bdi>{message}</bdi>
      </dd>
    </>
  )
}

/** The same of a node that is not read yet. */
export const UnreadNode = ({ operation_id, id }: { operation_id: string; id: string }) => {
  useTopic(`operation:${operation_id}`)
  const { data: node, error, refetch } = useQuery(nodeQuery(operation_id, id))
  if (node)
    return (
      <section className="card flex flex-col gap-3 p-4" aria-label={tDecide.gate.brief.title}>
        <NodeFacts node={node} />
      </section>
    )
  return error ? <Failure error={error} retry={() => void refetch()} /> : null
}

export const newestAttempt = (node: NodeDetail): Attempt | undefined =>
  node.attempts.reduce<Attempt | undefined>(
    (newest, one) => (newest === undefined || one.attempt > newest.attempt ? one : newest),
    undefined,
  )

const ErrorCard = ({ error }: { error: NonNullable<Attempt['error']> }) => (
  <div className="rounded-card bg-bad-soft p-3">
    <p className="font-medium text-bad wrap-anywhere">{error.message}</p>
    <p className="text-table">
      {tOperation.node.error_class}: <code>{error.class}</code>. {tOperation.node.retryable}:{' '}
      {error.retryable ? tOperation.node.yes : tOperation.node.no}.
    </p>
    {error.hint ? (
      <p lang="en" className="text-table">
        {error.hint}
      </p>
    ) : null}
  </div>
)
