import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { commandSender } from './commands.ts'

/**
 * Plans an intent on the current catalog, or rehearses it. Neither changes a target, so no dialog asks for
 * confirmation.
 */
export const usePreview = (intent_id: string, done: (plan_id: string) => void) => {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const sender = useRef(commandSender())
  const send = async (body: Record<string, unknown> = {}) => {
    if (busy) return
    setBusy(true)
    setProblem(null)
    const path = `/v1/intents/${encodeURIComponent(intent_id)}/plan-preview`
    const outcome = await sender.current<{ plan_id: string }>({ path, body })
    setBusy(false)
    if (!('reply' in outcome)) return setProblem(outcome.problem)
    // To plan once more is another command.
    sender.current = commandSender()
    for (const noun of ['plan', 'intents']) void client.invalidateQueries({ queryKey: [noun] })
    done(outcome.reply.plan_id)
  }
  return { busy, problem, send: (body?: Record<string, unknown>) => void send(body) }
}
