import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { problemOf, withSession } from '../api/client.ts'
import { ProblemText } from '../ui/failure.tsx'

type Said = string | Problem | null

/** Changes to the person's account, one at a time, and the last one's outcome. `act` returns whether it succeeded. */
export const useChanges = (noun: string) => {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<Said>(null)
  const act = async (work: () => Promise<Said>, done: string): Promise<boolean> => {
    if (busy) return false
    setBusy(true)
    const refused = await work()
    setSaid(refused ?? done)
    await client.invalidateQueries({ queryKey: [noun] })
    setBusy(false)
    return refused === null
  }
  return { busy, said, setSaid, act }
}

const codeOf = (said: Said) => (typeof said === 'object' ? said?.code : undefined)

/** Whether the person must prove who they are and try again: recently, or by a second factor. */
export const needsProof = (said: Said): boolean => ['reauth_required', 'factor_required'].includes(codeOf(said) ?? '')

/** Announces the outcome of the last change. A sign-in that is too old needs no words: the page asks for a proof. */
export const Told = ({ said }: { said: Said }) => (
  <div role="status">
    {typeof said === 'string' ? (
      <p>{said}</p>
    ) : said && codeOf(said) !== 'reauth_required' ? (
      <ProblemText problem={said} />
    ) : null}
  </div>
)

/** Sends a change to the person's account. Returns the refusal, or null. */
export const send = async (
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<Problem | null> => {
  try {
    const headers = { 'idempotency-key': crypto.randomUUID(), ...(body ? { 'content-type': 'application/json' } : {}) }
    const given = body ? { body: JSON.stringify(body) } : {}
    const answer = await withSession(new Request(path, { method, headers, ...given }))
    if (answer.ok) return null
    return problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))
  } catch (thrown) {
    return problemOf(thrown)
  }
}
