import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { Gate } from '../api/types.ts'
import { gateQuery, graphQuery } from '../queries/operations.ts'
import { Card } from '../ui/card.tsx'
import { Failure } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { OperationLink } from '../values/links.tsx'
import { isMe, nameOf } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { useTimeWords } from '../values/time.tsx'
import { AfterDecision, DecidePanel, type Verdict } from '../votes/panel.tsx'
import { ruleWords, Votes } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { GateContextView } from './context.tsx'
import { GateSubjectView } from './subject.tsx'

/** One gate: its question, the subject of the decision, its context, the votes, and the decision. */
export const GatePage = () => {
  const { operation_id, gate_id } = useParams({ from: '/shell/operations/$operation_id/gates/$gate_id' })
  useTopic(`operation:${operation_id}`)
  const { data: gate, error, isPending, refetch } = useQuery(gateQuery(operation_id, gate_id))
  const graph = useQuery(graphQuery(operation_id)).data
  const [deciding, setDeciding] = useState<Verdict | null>(null)
  const ranks = useMemo(() => new Map(graph?.nodes.map((node, rank) => [node.node_id, rank])), [graph])
  if (gate === undefined) {
    return (
      <Page>
        <Heading title={tDecide.gate.page}>{tDecide.gate.page}</Heading>
        {isPending ? <Loading /> : <Failure error={error} retry={() => void refetch()} noun={t.noun.gate} />}
      </Page>
    )
  }
  const waiting = gate.status === 'waiting'
  return (
    <Page>
      <p className="text-muted">
        <OperationLink id={operation_id}>{gate.operation_title}</OperationLink>
      </p>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <Heading title={gate.question}>{gate.question}</Heading>
        <Status state={gate.status} badge />
      </div>
      <div className="max-w-text" aria-live="polite">
        <Sentence gate={gate} />
      </div>
      <div className="gate-columns">
        <div className="flex min-w-0 flex-col gap-4">
          <Card title={tDecide.gate.subject} note={tDecide.gate.subject_note}>
            <div className="p-4">
              {gate.subject ? (
                <GateSubjectView subject={gate.subject} ranks={ranks} />
              ) : (
                <p className="text-muted">{tDecide.gate.no_subject}</p>
              )}
            </div>
          </Card>
          <GateContextView gate={gate} />
          <Card title={tDecide.gate.votes}>
            <div className="p-4">
              <Votes gate={gate} waiting={waiting} />
            </div>
          </Card>
        </div>
        <div className="decide-column">
          {waiting ? (
            <DecidePanel gate={gate} open={deciding} setOpen={setDeciding} />
          ) : (
            <Outcome gate={gate} deciding={deciding !== null} />
          )}
        </div>
      </div>
    </Page>
  )
}

/** The decision; a person whose own dialog was still open learns that another person was first. */
const Outcome = ({ gate, deciding }: { gate: Gate; deciding: boolean }) => (
  <section className="card flex flex-col items-start gap-3 p-4" aria-label={tDecide.gate.panel}>
    <Status state={gate.status} badge />
    <StatusWords gate={gate} />
    {deciding && gate.decided && gate.status !== 'expired' && !isMe(gate.decided.by) ? (
      <p role="alert">{tDecide.gate.too_late(nameOf(gate.decided.by))}</p>
    ) : null}
    {gate.decided?.by ? <AfterDecision gate={gate} /> : null}
  </section>
)

const Sentence = ({ gate }: { gate: Gate }) => {
  const words = useTimeWords()
  return (
    <>
      <StatusWords gate={gate} />
      {gate.status !== 'waiting' ? null : gate.deadline_at ? (
        <p className="text-muted">
          {tDecide.gate.deadline(
            words(gate.deadline_at),
            gate.on_timeout === 'reject'
              ? tDecide.gate.and_then(
                  tDecide.gate.timeout.reject ?? '',
                  tDecide.gate.reject_effect[gate.on_reject] ?? gate.on_reject,
                )
              : (tDecide.gate.timeout[gate.on_timeout] ?? gate.on_timeout),
          )}
        </p>
      ) : (
        <p className="text-muted">{tDecide.gate.no_deadline}</p>
      )}
    </>
  )
}

const StatusWords = ({ gate }: { gate: Gate }) => {
  const words = useTimeWords()
  const who = gate.decided ? nameOf(gate.decided.by) : t.system
  const at = gate.decided ? words(gate.decided.at) : ''
  const text =
    gate.status === 'waiting'
      ? tDecide.gate.waiting(ruleWords(gate))
      : gate.status === 'armed'
        ? tDecide.gate.not_reached
        : gate.status === 'cancelled'
          ? tDecide.gate.cancelled
          : gate.status === 'expired'
            ? tDecide.gate.expired(at)
            : tDecide.gate[gate.status](who, at)
  return <p>{text}</p>
}
