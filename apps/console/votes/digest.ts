import { useEffect, useState } from 'react'
import { digestOf } from '../../shared/contracts/client/digest.ts'
import { tDecide } from '../words/decide.ts'

export type DigestCheck = 'checking' | 'matches' | 'differs'

/** Whether this page shows the subject of the server's digest, which is recomputed here from the shown subject. */
export const useDigestCheck = (subject: unknown, digest: string | null): DigestCheck => {
  const [computed, setComputed] = useState<{ subject: unknown; digest: string } | null>(null)
  useEffect(() => {
    let left = false
    void digestOf(subject).then((value) => {
      if (!left) setComputed({ subject, digest: value })
    })
    return () => {
      left = true
    }
  }, [subject])
  if (computed === null || computed.subject !== subject) return 'checking'
  return computed.digest === digest ? 'matches' : 'differs'
}

/** Why this page must not send a decision; an approval needs a checked digest. */
export const unchecked = (check: DigestCheck, approve: boolean): string | undefined =>
  check === 'differs'
    ? tDecide.gate.digest_differs
    : approve && check === 'checking'
      ? tDecide.gate.checking
      : undefined
