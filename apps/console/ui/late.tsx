import { notifyManager, type Query, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useSyncExternalStore } from 'react'
import { useConnection } from '../api/hooks.ts'
import { serverNow } from '../api/live.ts'
import { queryOf } from '../api/read.ts'
import { dropRecorded, type Recorded } from '../api/recorded.ts'
import { Button } from '../forms/button.tsx'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
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

/**
 * News after a page was drawn: commands that were recorded and then refused or withdrawn, each until the person
 * closes it; and parts of the page that could not be read again.
 */
export const LateNews = ({ recorded }: { recorded: readonly Recorded[] }) => (
  <>
    <StaleReads />
    {recorded.map((one) => (
      <LateRefusal key={one.command_id} {...one} />
    ))}
  </>
)

/**
 * Old data whose new read failed. Rights have a banner of their own, and a further page that could not be read is
 * reported in its list.
 */
const isStale = ({ queryKey, state: { status, data, error, fetchMeta } }: Query): boolean =>
  status === 'error' && data !== undefined && queryKey[0] !== 'me' && !isGone(error) && !fetchMeta?.fetchMore

const StaleReads = () => {
  const client = useQueryClient()
  const cache = client.getQueryCache()
  const { zone } = useDisplay()
  const { mode } = useConnection()
  const since = useSyncExternalStore(
    useCallback((tell) => cache.subscribe(notifyManager.batchCalls(tell)), [cache]),
    () => Math.min(...cache.findAll({ type: 'active', predicate: isStale }).map(({ state }) => state.dataUpdatedAt)),
  )
  // Otherwise the banner of the connection says how old the data is.
  if (mode !== 'live' || since === Number.POSITIVE_INFINITY) return null
  return (
    <div className="banner">
      <span>{tOperation.operation.late.stale(clockTime(since + serverNow() - Date.now(), zone, true))}</span>
      <Button
        onClick={() => void client.refetchQueries({ type: 'active', predicate: isStale })}
        word={t.connection.retry}
      />
    </div>
  )
}

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
