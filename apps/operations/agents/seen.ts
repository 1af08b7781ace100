import type { Db } from '../../../db/client.ts'
import { noteAgent, noteTaken, removeAgent, type SeenAgent } from '../../../db/operations/agents/rows.ts'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import type { Telemetry } from '../../shared/telemetry.ts'

/** An agent asks every few seconds with each of its slots; its row is written this often at most, unless it changes. */
const EVERY_MS = 10_000
const MOST = 1000

/** Keeps the list of agents. It is for people: no failure here keeps an agent from its work. */
export const createSeen = (db: Db, { log }: Pick<Telemetry, 'log'>) => {
  const noted = new Map<string, { at: number; as: string }>()
  const warn = (error: unknown) => log.warn({ err: error }, 'the list of agents could not be written')
  return {
    note: async (seen: SeenAgent): Promise<void> => {
      const as = JSON.stringify(seen)
      const last = noted.get(seen.agent)
      const now = performance.now()
      if (last?.as === as && now - last.at < EVERY_MS) return
      if (noted.size >= MOST) noted.clear()
      noted.set(seen.agent, { at: now, as })
      await noteAgent(db, seen).catch(warn)
    },
    gone: async ({ agent }: SeenAgent): Promise<void> => {
      noted.delete(agent)
      await removeAgent(db, agent).catch(warn)
    },
    taken: ({ execution_token }: Work, agent: string): Promise<void> =>
      noteTaken(db, sha256Hex(execution_token), agent).catch(warn),
  }
}
export type Seen = ReturnType<typeof createSeen>
