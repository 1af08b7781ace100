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

export const addRecorded = (one: Recorded): void => set([...recorded, one])
export const dropRecorded = (command_id: string): void => set(recorded.filter((one) => one.command_id !== command_id))
export const useRecorded = (): readonly Recorded[] => useSyncExternalStore(subscribe, () => recorded)
