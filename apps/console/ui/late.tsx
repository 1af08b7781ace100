import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { dropRecorded, type Recorded, useRecorded } from '../api/recorded.ts'
import { commandQuery } from '../queries/operations.ts'
import { OperationLink } from '../values/links.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { ProblemText } from './failure.tsx'

/** No frame reports it while the stream is away. */
const ASK_AGAIN_MS = 5000

const useOutcome = ({ operation_id, command_id }: Recorded) =>
  useQuery({
    ...commandQuery(operation_id, command_id),
    refetchInterval: ({ state }) =>
      state.status !== 'error' && (state.data?.command.status ?? 'accepted') === 'accepted' ? ASK_AGAIN_MS : false,
  }).data

/** Commands that were recorded and then refused or withdrawn: each stays until the person closes it. */
export const LateRefusals = () => {
  const recorded = useRecorded()
  return (
    <div role="status">
      {recorded.map((one) => (
        <LateRefusal key={one.command_id} {...one} />
      ))}
    </div>
  )
}

const LateRefusal = (one: Recorded) => {
  const status = useOutcome(one)?.command.status
  useEffect(() => {
    if (status === 'applied') dropRecorded(one.command_id)
  }, [status, one.command_id])
  return status === 'refused' || status === 'withdrawn' ? (
    <div className="banner">
      <LateOutcome {...one} />
      <OperationLink id={one.operation_id} className="button">
        {tOperation.operation.open}
      </OperationLink>
      <button type="button" className="button" onClick={() => dropRecorded(one.command_id)}>
        {t.close}
      </button>
    </div>
  ) : null
}

/** The outcome of a recorded command, once it is known. */
export const LateOutcome = (one: Recorded) => {
  const { command, outcome } = useOutcome(one) ?? {}
  if (command === undefined || command.status === 'accepted') return null
  const words = tDecide.command.late[command.status]
  const { code, detail } = outcome ?? {}
  return (
    <div className="min-w-0">
      <p>{words(tOperation.operation.kind(command.kind))}</p>
      {code && detail ? <ProblemText problem={{ code, detail, violations: [] }} /> : null}
    </div>
  )
}
