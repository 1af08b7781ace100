import { useSyncExternalStore } from 'react'
import { onPhase, sessionPhase } from '../session/token.ts'

/** A command of this tab that the server recorded with 202: its outcome follows later. */
export type Recorded = { operation_id: string; command_id: string }

let recorded: readonly Recorded[] = []
const listeners = new Set<() => void>()
const set = (next: readonly Recorded[]): void => {
  recorded = next
  for (const listener of listeners) listener()
}
const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
onPhase(() => {
  if (sessionPhase().name === 'signed_out') set([])
})

/** Keeps a recorded command until its outcome is known; undefined for a reply that names none. */
export const keepRecorded = (path: string, reply: unknown): Recorded | undefined => {
  const { command, operation_id: own } = reply as { command?: { command_id?: string }; operation_id?: string }
  const operation_id = /^\/v1\/operations\/([^/]+)\//.exec(path)?.[1] ?? own
  if (!command?.command_id || operation_id === undefined) return undefined
  const one = { operation_id: decodeURIComponent(operation_id), command_id: command.command_id }
  set([...recorded.filter(({ command_id }) => command_id !== one.command_id), one])
  return one
}
export const dropRecorded = (command_id: string): void => set(recorded.filter((one) => one.command_id !== command_id))
export const useRecorded = (): readonly Recorded[] => useSyncExternalStore(subscribe, () => recorded)
