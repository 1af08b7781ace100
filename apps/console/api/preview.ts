import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { sendCommand } from './commands.ts'

/**
 * Plans an intent on the current catalog, or rehearses it. Neither changes a target, so no dialog asks for
 * confirmation. The key belongs to the body and is kept until an answer arrives.
 */
export const usePreview = (intent_id: string, done: (plan_id: string) => void) => {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const sent = useRef<{ key: string; body: string } | null>(null)
  const send = async (body: Record<string, unknown> = {}) => {
    if (busy) return
    setBusy(true)
    setProblem(null)
    const text = JSON.stringify(body)
    if (sent.current?.body !== text) sent.current = { key: crypto.randomUUID(), body: text }
    const path = `/v1/intents/${encodeURIComponent(intent_id)}/plan-preview`
    const outcome = await sendCommand<{ plan_id: string }>({ path, body }, sent.current.key)
    setBusy(false)
    if (outcome.kind !== 'unknown') sent.current = null
    if (!('reply' in outcome)) return setProblem(outcome.problem ?? problemFrom(0, null))
    for (const noun of ['plan', 'intents']) void client.invalidateQueries({ queryKey: [noun] })
    done(outcome.reply.plan_id)
  }
  return { busy, problem, send: (body?: Record<string, unknown>) => void send(body) }
}
