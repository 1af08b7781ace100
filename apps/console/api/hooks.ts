import { useEffect, useSyncExternalStore } from 'react'
import { onPhase, type Phase, sessionPhase } from '../session/token.ts'
import { type Connection, connectionNow, holdTopic, onConnection } from './live.ts'

export const useConnection = (): Connection => useSyncExternalStore(onConnection, connectionNow)
export const usePhase = (): Phase => useSyncExternalStore(onPhase, sessionPhase)

/** Keeps a topic live while the component is on screen. An empty name is ignored. */
export const useTopic = (topic: string): void => {
  useEffect(() => (topic === '' ? undefined : holdTopic(topic)), [topic])
}
