import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { Problem } from '../../../shared/contracts/client/problem.ts'
import { commandSender } from '../../api/commands.ts'
import { keepRecorded } from '../../command/send.ts'
import { type Candidate, keyOf, sendEach, type Together } from './alike.ts'

/** `held`: not sent, or not judged; it is sent again with the same key. */
export type Result =
  | { state: 'sending' }
  | { state: 'done'; status: string }
  | { state: 'held' | 'refused' | 'unknown'; problem: Problem }

/**
 * Votes on gates and patches together: one command, key, digest and round each. A vote that was not judged, or whose answer
 * is missing, stops the rest; it is sent again with the same key.
 */
export const useBatch = (verdict: Together) => {
  const client = useQueryClient()
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map())
  const [sending, setSending] = useState(false)
  const [stale, setStale] = useState(false)
  /** A second press before the dialog redraws must not send again. */
  const busy = useRef(false)
  const [sender] = useState(commandSender)
  const batch = useRef<{ id: string; size: number }>(undefined)
  const tell = (candidate: Candidate, result: Result) =>
    setResults((before) => new Map(before).set(keyOf(candidate.row), result))

  const vote = async (candidate: Candidate, comment: string): Promise<'on' | 'stop'> => {
    const { id, size } = batch.current as NonNullable<typeof batch.current>
    const { row, read } = candidate
    const [part, round] =
      'gate_id' in row
        ? [`gates/${encodeURIComponent(row.gate_id)}`, { round: row.round }]
        : [`patches/${row.patch_id}`, {}]
    tell(candidate, { state: 'sending' })
    const path = `/v1/operations/${encodeURIComponent(row.operation_id)}/${part}/${verdict}`
    const seen = verdict === 'approve' ? { reviewed_digest: read.digest } : {}
    const body = { ...round, ...seen, ...(comment === '' ? {} : { comment }), batch: { id, size } }
    const outcome = await sender<{ status: string }>({ path, body })
    if (outcome.kind === 'accepted') keepRecorded(path, outcome.reply)
    if (outcome.kind === 'applied' || outcome.kind === 'accepted') {
      tell(candidate, { state: 'done', status: outcome.reply.status })
      return 'on'
    }
    const { kind, problem } = outcome
    if (problem.code === 'reauth_required') setStale(true)
    tell(candidate, { state: kind, problem })
    return kind === 'refused' ? 'on' : 'stop'
  }

  const send = async (candidates: readonly Candidate[], comment: string) => {
    if (busy.current) return
    busy.current = true
    setSending(true)
    setStale(false)
    batch.current ??= { id: crypto.randomUUID(), size: candidates.length }
    try {
      await sendEach(candidates, (candidate) => vote(candidate, comment))
    } finally {
      busy.current = false
      setSending(false)
      for (const key of ['inbox', 'me', 'gate', 'patch', 'patches', 'operation', 'graph'])
        void client.invalidateQueries({ queryKey: [key] })
    }
  }
  return { results, sending, stale, send, confirmed: () => setStale(false), begun: batch.current !== undefined }
}
