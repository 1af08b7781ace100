import { useQuery } from '@tanstack/react-query'
import { useTopic } from '../api/hooks.ts'
import type { Waiting } from '../api/types.ts'
import { patchQuery, planQuery } from '../queries/changes.ts'
import { gateQuery, operationQuery } from '../queries/operations.ts'
import { OperationLink, PatchLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { type Expiring, ExpiringLink } from './expiring.tsx'
import type { Line } from './steady.ts'

type WaitingPatch = Waiting['patches'][number]

/** What became of a line that left the list while this page was open. */
export const Outcome = ({ line }: { line: Line }) => {
  if ('patch_id' in line) return <PatchOutcome patch={line} />
  if (!('kind' in line)) return <OperationOutcome id={line.operation_id} title={line.operation_title} />
  if (line.operation_id === null) return <PlanOutcome plan_id={line.plan_id ?? ''} line={line} />
  if (line.gate_id === null) return <OperationOutcome id={line.operation_id} title={line.title} />
  return (
    <>
      <ExpiringLink line={line} className="wrap-anywhere" />
      <GateOutcome operation_id={line.operation_id} gate_id={line.gate_id} />
    </>
  )
}

const PatchOutcome = ({ patch: { operation_id, patch_id, reason } }: { patch: WaitingPatch }) => {
  const now = useQuery(patchQuery(operation_id, patch_id)).data
  return (
    <>
      {now ? <Status state={now.status} /> : null}
      <PatchLink operation_id={operation_id} patch_id={patch_id} className="wrap-anywhere">
        {reason}
      </PatchLink>
      {now?.decided ? (
        <span className="text-muted">
          {nameOf(now.decided.by)}, <TimeText at={now.decided.at} />
        </span>
      ) : null}
    </>
  )
}

/** An operation that no failure holds any longer, or whose deadline is no longer near. */
const OperationOutcome = ({ id, title }: { id: string; title: string }) => {
  useTopic(`operation:${id}`)
  const now = useQuery(operationQuery(id)).data
  return (
    <>
      {now ? <Status state={now.status} /> : null}
      <OperationLink id={id}>{title}</OperationLink>
    </>
  )
}

const PlanOutcome = ({ plan_id, line }: { plan_id: string; line: Expiring }) => {
  const now = useQuery(planQuery(plan_id)).data
  return (
    <>
      {now ? <Status state={now.status} /> : null}
      <ExpiringLink line={line} className="wrap-anywhere" />
    </>
  )
}

export const GateOutcome = ({ operation_id, gate_id }: { operation_id: string; gate_id: string }) => {
  const gate = useQuery(gateQuery(operation_id, gate_id)).data
  return gate === undefined ? null : (
    <p className="flex flex-wrap items-center gap-x-2 text-muted">
      <Status state={gate.status} />
      {gate.decided ? (
        <span>
          {nameOf(gate.decided.by)}, <TimeText at={gate.decided.at} />
        </span>
      ) : null}
    </p>
  )
}
