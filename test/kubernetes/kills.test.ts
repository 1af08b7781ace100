import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { killTool } from '../agent/support/acts.ts'
import { createDice } from '../chaos/dice.ts'
import { spawnWorker } from '../operations/support/worker.ts'
import { until } from '../support/until.ts'
import { configMap, type KubeLab, startKubeLab } from './support/lab.ts'
import { TOOLS } from './support/server.ts'

/**
 * Kills the agent, kubectl and the worker with kill -9 at random moments of an apply and of its undo. Writes are
 * counted by the cluster's database. KILLS_ROUNDS (1) sets the number of rounds, KILLS_SEED repeats the same moments.
 */
const rounds = Number(process.env.KILLS_ROUNDS ?? 1)
const seed = Number(process.env.KILLS_SEED ?? Date.now() % 1_000_000)
const dice = createDice(seed)
const SIZE = 120
/** Roughly how long an apply of the set takes here. */
const LONGEST_MS = 2500
let k: KubeLab
beforeAll(async () => {
  k = await startKubeLab({ bringWorker: spawnWorker })
}, 240_000)
afterAll(() => k?.stop())

const strike: Record<string, () => Promise<void> | void> = {
  agent: () => k.restart(),
  kubectl: () => void killTool(k.agent(), TOOLS().program),
  worker: () => k.lab.replaceWorker(),
}
/** Strikes at a random moment after the agent's line; returns the words for a failed assertion. */
const strikeAfter = async (line: string, victim: string, before: number) => {
  const seen = () => k.agent().said().split(line).length - 1
  await until(() => seen() > before, { what: line })
  const wait = dice.between(0, LONGEST_MS)
  await delay(wait)
  await strike[victim]?.()
  return `${line}, its ${victim} killed after ${Math.round(wait)} ms, seed ${seed}`
}

const because = (said: string) => (error: Error) => {
  throw new Error(`${said}: ${error.message}`)
}

it.each(['agent', 'kubectl', 'worker'])(
  '%s killed at any moment of an apply and of its undo: each object is written once by each',
  async (victim) => {
    const more = { retry: { max_attempts: 3 }, timeouts: { run_s: 90, start_s: 60, heartbeat_s: 5 } }
    for (let round = 0; round < rounds; round++) {
      const place = `web-${victim}-${round}`
      await k.kube.namespace(place)
      const names = Array.from({ length: SIZE }, (_, n) => `map-${n}`)
      const maps = (a: string, list: string[]) => list.map((name) => configMap(name, { a }))
      const [gone, fresh] = ['map-0', 'fresh']
      const writes = async () => {
        const { [`signalbox-set-${place}-all`]: _, ...objects } = await k.kube.writesOf('configmaps', place)
        return objects
      }
      const times = (n: number, list: string[]) => Object.fromEntries(list.map((name) => [name, n]))
      k.write(`${place}/all/all.yaml`, maps('1', names))
      await k.carryOut(`${place}/all`)
      expect(await writes()).toEqual(times(1, names))

      const kept = names.filter((name) => name !== gone)
      k.write(`${place}/all/all.yaml`, maps('2', [...kept, fresh]))
      const graph = k.change(`${place}/all`, { inputs: { prune: true }, more })
      const rest = { node_id: 'rest', executor: 'noop', depends_on: ['apply'] }
      const gates = [...graph.gates, { ...graph.gates[0], gate_id: 'hold', guards: ['rest'] }]
      const path = await k.lab.startGraph({ nodes: [...graph.nodes, rest], gates })
      const line = 'apply: kubernetes.apply started'
      const before = k.agent().said().split(line).length - 1
      await k.lab.approve(path)
      const said = await strikeAfter(line, victim, before)
      await k.lab.reaches(path, 'succeeded', 'apply').catch(because(said))
      expect(await writes(), said).toEqual({ ...times(2, kept), ...times(1, [fresh]) })

      await k.lab.waiting(path, 'hold')
      const undone = k.agent().said().split('kubernetes.undo started').length - 1
      const stopped = await k.lab.p.as('olga').post(`${path}/cancel`, { reason: 'undo it', mode: 'compensate' })
      expect([200, 202], stopped.text).toContain(stopped.status)
      const undo = await strikeAfter('kubernetes.undo started', victim, undone)
      await k.lab.reaches(path, 'compensated', 'apply').catch(because(undo))
      expect(await writes(), undo).toEqual({ ...times(3, kept), ...times(1, [gone]) })
    }
  },
  60_000 + rounds * 240_000,
)
