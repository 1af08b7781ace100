import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { Suspense } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { Gate } from '../api/types.ts'
import { Brief } from '../briefs/gate.tsx'
import { useDeciding } from '../command/deciding.ts'
import { gateQuery } from '../queries/operations.ts'
import { Card } from '../ui/card.tsx'
import { readOf, UnreadPage } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Heading, Page } from '../ui/page.tsx'
import { OperationLink } from '../values/links.tsx'
import { isMe, nameOf } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { useTimeWords } from '../values/time.tsx'
import { AfterDecision, DecidePanel, didWord, type Verdict } from '../votes/panel.tsx'
import { ruleWords, Votes } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { GateSubjectView } from './subject.tsx'

/** Folded, so it may come later. */
const GateContextView = lazyPart(() => import('./context.tsx').then((part) => ({ default: part.GateContextView })))

/** One gate: its question, the brief of the decision, and the decision; the rest is folded below. */
export const GatePage = () => {
  const { operation_id, gate_id } = useParams({ from: '/shell/operations/$operation_id/gates/$gate_id' })
  useTopic(`operation:${operation_id}`)
  const query = useQuery({
    ...gateQuery(operation_id, gate_id),
    refetchInterval: ({ state }) => (state.data?.status === 'waiting' ? CONTEXT_AGES_MS : false),
  })
  const gate = readOf(query)
  const waiting = gate?.status === 'waiting'
  const { open, setOpen, late, outcome } = useDeciding<Verdict>(waiting)
  if (gate === undefined) return <UnreadPage title={tDecide.gate.page} query={query} noun="gate" />
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
        {waiting ? null : <StatusWords gate={gate} />}
      </div>
      <div className="gate-columns">
        <div className="flex min-w-0 flex-col gap-4">
          {gate.subject ? <Brief gate={gate} subject={gate.subject} /> : <p>{tDecide.gate.no_subject}</p>}
          <section className="card">
            {gate.subject ? (
              <GateSubjectView subject={gate.subject} names={gate.brief?.names ?? {}} order={gate.brief?.order ?? []} />
            ) : null}
            <Suspense fallback={null}>
              <GateContextView gate={gate} />
            </Suspense>
          </section>
          {gate.votes.length > 0 ? (
            <Card title={tDecide.gate.votes}>
              <div className="p-4">
                <Votes gate={gate} waiting={waiting} />
              </div>
            </Card>
          ) : null}
        </div>
        <div className="decide-column">
          {waiting ? (
            <DecidePanel gate={gate} open={open} setOpen={setOpen} />
          ) : (
            <Outcome gate={gate} late={late} ref={outcome} />
          )}
        </div>
      </div>
    </Page>
  )
}

const CONTEXT_AGES_MS = 30_000

/** The decision; tells a person whose dialog was still open who decided meanwhile. */
const Outcome = ({ gate, late, ref }: OutcomeProps) => (
  <section ref={ref} tabIndex={-1} className="card flex flex-col items-start gap-3 p-4" aria-label={tDecide.gate.panel}>
    <Status state={gate.status} badge />
    <StatusWords gate={gate} />
    {late && gate.decided && gate.status !== 'expired' && !isMe(gate.decided.by) ? (
      <p role="alert">{tDecide.gate.too_late(nameOf(gate.decided.by), didWord(gate.status))}</p>
    ) : null}
    {gate.decided?.by ? <AfterDecision gate={gate} /> : null}
  </section>
)
type OutcomeProps = { gate: Gate; late: boolean; ref: React.Ref<HTMLElement> }

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
