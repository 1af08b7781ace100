import { useQuery } from '@tanstack/react-query'
import { useTopic } from '../api/hooks.ts'
import type { Waiting } from '../api/types.ts'
import { patchQuery } from '../queries/changes.ts'
import { operationQuery } from '../queries/operations.ts'
import { OperationLink, PatchLink } from '../values/links.tsx'
import { nameOf } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'

type WaitingPatch = Waiting['patches'][number]
type OpenFailure = Waiting['failures'][number]

/** What became of a line that left the list while this page was open. */
export const Outcome = ({ line }: { line: WaitingPatch | OpenFailure }) =>
  'patch_id' in line ? <PatchOutcome patch={line} /> : <FailureOutcome failure={line} />

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

/** The operation that a failure holds no longer. */
const FailureOutcome = ({ failure: { operation_id, operation_title } }: { failure: OpenFailure }) => {
  useTopic(`operation:${operation_id}`)
  const now = useQuery(operationQuery(operation_id)).data
  return (
    <>
      {now ? <Status state={now.status} /> : null}
      <OperationLink id={operation_id}>{operation_title}</OperationLink>
    </>
  )
}
