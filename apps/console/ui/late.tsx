import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { queryOf } from '../api/read.ts'
import { dropRecorded, type Recorded } from '../api/recorded.ts'
import { Button } from '../forms/button.tsx'
import { OperationLink } from '../values/links.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { isGone, ProblemText } from './failure.tsx'

/** A command that was answered with 202, and its outcome once it is known. */
const commandQuery = (operation_id: string, command_id: string) =>
  queryOf(['command', operation_id, command_id], '/v1/operations/{operation_id}/commands/{command_id}', {
    path: { operation_id, command_id },
  })

/** No frame reports it while the stream is away. */
const ASK_AGAIN_MS = 5000

const useOutcome = ({ operation_id, command_id }: Recorded) => {
  const { data, error } = useQuery({
    ...commandQuery(operation_id, command_id),
    refetchInterval: ({ state }) =>
      !isGone(state.error) && (state.data?.command.status ?? 'accepted') === 'accepted' ? ASK_AGAIN_MS : false,
  })
  return { data, gone: isGone(error) }
}

/** Commands that were recorded and then refused or withdrawn: each stays until the person closes it. */
export const LateRefusals = ({ recorded }: { recorded: readonly Recorded[] }) =>
  recorded.map((one) => <LateRefusal key={one.command_id} {...one} />)

const LateRefusal = (one: Recorded) => {
  const { data, gone } = useOutcome(one)
  const status = data?.command.status
  const over = status === 'applied' || gone
  useEffect(() => {
    if (over) dropRecorded(one.command_id)
  }, [over, one.command_id])
  return status === 'refused' || status === 'withdrawn' ? (
    <div className="banner">
      <LateOutcome {...one} />
      <OperationLink id={one.operation_id} className="button">
        {tOperation.operation.open}
      </OperationLink>
      <Button onClick={() => dropRecorded(one.command_id)} word={t.close} />
    </div>
  ) : null
}

/** The outcome of a recorded command, once it is known. */
export const LateOutcome = (one: Recorded) => {
  const { command, outcome } = useOutcome(one).data ?? {}
  if (command === undefined || command.status === 'accepted') return null
  const words = tOperation.operation.late[command.status]
  const { code, detail } = outcome ?? {}
  return (
    <div className="min-w-0">
      <p>{words(tOperation.operation.kind(command.kind))}</p>
      {code && detail ? <ProblemText problem={{ code, detail, violations: [] }} /> : null}
    </div>
  )
}
