import { useQuery } from '@tanstack/react-query'
import { useTopic } from '../api/hooks.ts'
import type { Gate, GateSubject } from '../api/types.ts'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { gateQuery } from '../queries/operations.ts'
import { Failure } from '../ui/failure.tsx'
import { useNow, useTimeWords } from '../values/time.tsx'
import { Asked, BriefCard, ChangeLine } from '../votes/brief.tsx'
import { contextLines } from '../votes/context.ts'
import { tDecide } from '../words/decide.ts'

/** The decision at a gate in a few lines. */
export const Brief = ({ gate, subject }: { gate: Gate; subject: GateSubject }) => {
  const now = useNow()
  const at = useTimeWords()
  const { zone } = useDisplay()
  const plan_id = gate.brief?.asked.plan_id
  return (
    <BriefCard
      bound={gate.status === 'waiting' ? tDecide.gate.brief.bound : tDecide.gate.brief.was_bound}
      context={tDecide.gate.brief.context(clockTime(Date.parse(gate.context.as_of), zone, true))}
      asks={gate.brief && !subject.asked ? <Asked asked={gate.brief.asked} plan_id={plan_id} /> : null}
      lines={gate.brief ? contextLines(gate, now, at) : []}
    >
      {subject.asked ? (
        <p>
          <Asked asked={subject.asked} plan_id={plan_id} />
        </p>
      ) : null}
      <ChangeLine subject={subject} order={gate.brief?.order} />
    </BriefCard>
  )
}

/** The same of a gate that is not read yet. */
export const UnreadGate = ({ operation_id, id }: { operation_id: string; id: string }) => {
  useTopic(`operation:${operation_id}`)
  const { data: gate, error, refetch } = useQuery(gateQuery(operation_id, id))
  if (gate) return gate.subject ? <Brief gate={gate} subject={gate.subject} /> : <p>{tDecide.gate.no_subject}</p>
  return error ? <Failure error={error} retry={() => void refetch()} /> : null
}
