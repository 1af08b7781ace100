import { useQuery } from '@tanstack/react-query'
import { Fragment } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { Attempt, NodeDetail } from '../api/types.ts'
import { progressOf } from '../graph/progress.ts'
import { shown } from '../kit/format.ts'
import { nodeQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { type Fact, Facts } from '../values/facts.tsx'
import { GateLink, ResourceLink } from '../values/links.tsx'
import { Status } from '../values/status.tsx'
import { DurationText, TimeText } from '../values/time.tsx'
import { tDecide } from '../words/decide.ts'
import { tOperation } from '../words/operation.ts'

type NodeFactsProps = { node: NodeDetail; attempt?: Attempt | undefined }

/** The facts of a node and of its newest (or the selected) attempt. */
export const NodeFacts = ({ node, attempt = newestAttempt(node) }: NodeFactsProps) => (
  <>
    {attempt?.error ? <ErrorCard error={attempt.error} /> : null}
    <Facts facts={factsOf(node, attempt)} />
  </>
)

const factsOf = (node: NodeDetail, attempt: Attempt | undefined): Fact[] => {
  const words = tOperation.node
  // An attempt that has ended says how by its state and error.
  const message = attempt?.ended_at === null ? progressOf(attempt.progress) : undefined
  return [
    [words.target, node.target_id && <ResourceLink id={node.target_id} />],
    [words.executor, node.executor, 'mono'],
    [words.group, node.group_id],
    [tOperation.nodes.attempt, attempt?.attempt ?? words.no_attempt],
    [words.started, attempt && <TimeText at={attempt.started_at} form="both" />],
    [words.duration, attempt && <DurationText from={attempt.started_at} to={attempt.ended_at} />],
    [words.progress, message && <bdi aria-live="polite">{message}</bdi>, 'wrap-anywhere'],
    ...node.gates.map(
      ({ gate_id, question, status }): Fact => [
        tDecide.gate.page,
        <Fragment key={gate_id}>
          <GateLink operation_id={node.operation_id} gate_id={gate_id}>
            {question}
          </GateLink>
          <Status state={status} />
        </Fragment>,
        'flex flex-wrap items-center gap-2',
      ],
    ),
  ]
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
    <p className="font-medium text-bad wrap-anywhere">{shown(error.message)}</p>
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
