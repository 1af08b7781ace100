import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { answerOf, type Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf, withSession } from '../api/client.ts'
import { PasswordAgain } from '../command/fields.tsx'
import { ProblemText } from '../ui/failure.tsx'
import { refusalOf } from './password.api.ts'

type Said = string | Problem | null

/** Changes to the person's account, one at a time, and the last one's outcome. `act` returns whether it succeeded. */
export const useChanges = (noun: string) => {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<Said>(null)
  /** A second press before the page redraws must not act again. */
  const acting = useRef(false)
  const act = async (work: () => Promise<Said>, done: string): Promise<boolean> => {
    if (acting.current) return false
    acting.current = true
    setBusy(true)
    const refused = await work()
    setSaid(refused ?? done)
    await client.invalidateQueries({ queryKey: [noun] })
    acting.current = false
    setBusy(false)
    return refused === null
  }
  return { busy, said, setSaid, act }
}

const codeOf = (said: Said) => (typeof said === 'object' ? said?.code : undefined)

/** Lets the person prove who they are and try again: recently, or by a second factor. */
export const ProofFor = ({ said, confirmed }: { said: Said; confirmed: () => void }) => {
  const code = codeOf(said)
  if (code !== 'reauth_required' && code !== 'factor_required') return null
  return <PasswordAgain key={code} factor={code === 'factor_required'} confirmed={confirmed} />
}

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

/** The keys of changes whose answer is missing: sent again, they take effect once. */
const keys = new Map<string, string>()

/** Sends a change to the person's account. Returns the refusal, or null. */
export const send = async (
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<Problem | null> => {
  const change = JSON.stringify([method, path, body])
  const key = keys.get(change) ?? crypto.randomUUID()
  keys.set(change, key)
  try {
    const headers = { 'idempotency-key': key, ...(body ? { 'content-type': 'application/json' } : {}) }
    const given = body ? { body: JSON.stringify(body) } : {}
    const answer = await withSession(new Request(path, { method, headers, ...given }))
    const problem = await refusalOf(answer)
    if (!['unknown', 'wait'].includes(answerOf(answer.status, problem ?? undefined))) keys.delete(change)
    return problem
  } catch (thrown) {
    return problemOf(thrown)
  }
}
