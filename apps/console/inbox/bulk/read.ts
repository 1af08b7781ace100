import { type QueryFunction, useQueries } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Gate, Patch } from '../../api/types.ts'
import { patchQuery } from '../../queries/changes.ts'
import { gateQuery } from '../../queries/operations.ts'
import { type Ballot, type Candidate, candidateOf } from './alike.ts'

/** All items as read when the dialog opens, and those that could not be read; later changes do not reach them. */
export const useCandidates = (rows: Ballot[]) => {
  const [opened] = useState(() => Date.now())
  const [result, setResult] = useState<{ candidates: Candidate[]; unread: Ballot[] }>()
  const reads = useQueries({
    queries: rows.map((row) => ({ ...readOf(row), staleTime: 0, refetchOnMount: 'always' as const })),
  })
  const answered = reads.every(({ dataUpdatedAt, errorUpdatedAt }) => Math.max(dataUpdatedAt, errorUpdatedAt) >= opened)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first read is decided on
  useEffect(() => {
    if (!answered || result !== undefined) return
    const readAt = (at: number) => (reads[at]?.isError ? undefined : reads[at]?.data)
    const read = rows.flatMap((row, at) => {
      const read = readAt(at)
      return read ? [candidateOf(row, read)] : []
    })
    const unread = rows.filter((_, at) => readAt(at) === undefined)
    void Promise.all(read).then((candidates) => setResult({ candidates, unread }))
  }, [answered])
  return result
}

type Read = { queryKey: readonly unknown[]; queryFn: QueryFunction<Gate | Patch> }
const readOf = (row: Ballot): Read =>
  ('gate_id' in row ? gateQuery(row.operation_id, row.gate_id) : patchQuery(row.operation_id, row.patch_id)) as never
