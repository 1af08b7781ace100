import type { Db } from '../../../db/client.ts'
import { noteAgent, noteTaken, removeAgent, type SeenAgent } from '../../../db/operations/agents/rows.ts'
import type { Work } from '../../shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import type { Telemetry } from '../../shared/telemetry.ts'

/** An agent asks every few seconds with each of its slots; its row is written this often at most, unless it changes. */
const EVERY_MS = 10_000
const MOST = 1000
/** A process that has not asked for this long may have ended. Over NATS it speaks every 30 s at least. */
const LIVE_MS = 70_000
/** A process and its successor may share a name for half a minute. */
const UPGRADE_MS = LIVE_MS + 30_000
const MOST_INSTANCES = 20

/** Keeps the list of agents. It is for people: no failure here keeps an agent from its work. */
export const createSeen = (db: Db, { log }: Pick<Telemetry, 'log'>, now = () => performance.now()) => {
  const noted = new Map<string, { at: number; as: string }>()
  const instances = createInstances(now)
  const warn = (error: unknown) => log.warn({ err: error }, 'the list of agents could not be written')
  return {
    /** `instance`: the process that uses the name. */
    note: async (seen: SeenAgent, instance: string | undefined): Promise<void> => {
      if (seen.draining) instances.end(seen.agent, instance)
      else instances.note(seen.agent, instance)
      const as = JSON.stringify(seen)
      const last = noted.get(seen.agent)
      if (last?.as === as && now() - last.at < EVERY_MS) return
      if (noted.size >= MOST) noted.clear()
      noted.set(seen.agent, { at: now(), as })
      await noteAgent(db, seen).catch(warn)
    },
    gone: async ({ agent }: SeenAgent, instance: string | undefined): Promise<void> => {
      instances.end(agent, instance)
      noted.delete(agent)
      await removeAgent(db, agent).catch(warn)
    },
    taken: ({ execution_token }: Work, agent: string): Promise<void> =>
      noteTaken(db, sha256Hex(execution_token), agent).catch(warn),
    /** How many processes share the name, if several do; only those that this process hears. */
    sharing: instances.sharing,
  }
}
export type Seen = ReturnType<typeof createSeen>

/** Finds processes that use one name by mistake. An upgrade is none: the old process soon asks no longer. */
const createInstances = (now: () => number) => {
  /** The one that asked last comes last. */
  const names = new Map<string, Map<string, { first: number; last: number }>>()
  const isLive = ({ last }: { last: number }) => now() - last <= LIVE_MS
  /** Of more live names than fit, the first ones stay: none could be counted if each drove out another. */
  const makeRoom = (): boolean => {
    const [oldest] = names
    if (names.size < MOST || !oldest) return true
    return ![...oldest[1].values()].some(isLive) && names.delete(oldest[0])
  }
  return {
    note: (agent: string, instance: string | undefined): void => {
      if (instance === undefined) return
      if (!names.has(agent) && !makeRoom()) return
      const known = names.get(agent) ?? new Map<string, { first: number; last: number }>()
      names.delete(agent)
      names.set(agent, known)
      for (const [id, process] of known) if (!isLive(process)) known.delete(id)
      if (known.size < MOST_INSTANCES || known.has(instance))
        known.set(instance, { first: known.get(instance)?.first ?? now(), last: now() })
    },
    end: (agent: string, instance: string | undefined): void => {
      if (instance !== undefined) names.get(agent)?.delete(instance)
    },
    sharing: (agent: string): number | undefined => {
      const lasting = [...(names.get(agent)?.values() ?? [])].filter(
        (process) => isLive(process) && now() - process.first > UPGRADE_MS,
      )
      return lasting.length > 1 ? lasting.length : undefined
    },
  }
}
