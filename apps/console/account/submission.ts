import { useCallback, useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'

/**
 * A form that sends one command. The key belongs to the typed text: a repeat keeps it, even after a lost answer. The
 * next edit makes a new key, and so does a completed command, which also clears the form.
 */
export const useSubmission = <Fields extends Record<string, string>>(
  start: Fields,
  send: (fields: Fields, key: string) => Promise<Problem | null>,
  /** Fields that may be left empty; all others are required. */
  optional: readonly (keyof Fields)[] = [],
) => {
  const [fields, setFields] = useState(start)
  const [busy, setBusy] = useState(false)
  const [done, setDone] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const key = useRef(crypto.randomUUID())
  const type = useCallback((name: keyof Fields, value: string) => {
    setFields((before) => ({ ...before, [name]: value }))
    key.current = crypto.randomUUID()
  }, [])
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (busy || Object.entries(fields).some(([name, value]) => value === '' && !optional.includes(name))) return
    setBusy(true)
    setDone(false)
    const refused = await send(fields, key.current)
    setBusy(false)
    setProblem(refused)
    if (refused) return
    key.current = crypto.randomUUID()
    setFields(Object.fromEntries(Object.keys(fields).map((name) => [name, ''])) as Fields)
    setDone(true)
  }
  return { fields, type, busy, done, problem, setProblem, submit: (event: React.FormEvent) => void submit(event) }
}
