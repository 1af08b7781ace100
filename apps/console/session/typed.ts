import { useEffect, useRef, useState } from 'react'
import { currentUser, sessionPhase } from './token.ts'

/** What was being typed when a session ended elsewhere, by person and place; in memory only. */
const left = new Map<string, unknown>()

/**
 * A state that outlives the end of the session: the same person finds it at the same place after the next sign-in. The
 * place may change while the state stays.
 */
export const useTyped = <T>(place: string, initial: T | (() => T)) => {
  // When the state is left, no one is signed in.
  const [who] = useState(() => currentUser()?.user_id)
  const key = `${who} ${place}`
  const state = useState<T>(left.has(key) ? (left.get(key) as T) : initial)
  const now = useRef(state[0])
  now.current = state[0]
  useEffect(() => {
    left.delete(key)
    return () => {
      if (sessionPhase().name !== 'signed_in') left.set(key, now.current)
    }
  }, [key])
  return state
}
