import { uuidv7 } from '../../../apps/shared/ids.ts'
import { json, login, refresher, signIn, type Tokens } from '../auth/clients.ts'
import { send } from '../lib/load.ts'
import { decide, startGates } from '../operations/gates.ts'
import { type Bench as Operations, runGraph } from '../operations/runs.ts'
import { arrives, type Ground } from './ground.ts'

/** One kind of work of an installation, with its rate at the busiest moment of a large one. */
export type Flow = {
  name: string
  /** What a large installation has in a day, and how that becomes the peak. */
  a_day: string
  /** Per second, at the peak. */
  peak: number
  /** Callers at a time while its cost is measured. */
  callers: number
  /** Does some of it; returns how much. */
  act: (caller: number) => Promise<number>
}

const NODES = 100
const GATES = 30
/** Enough for all decisions of a run. */
const HELD = 24
const REFRESHED = 8

/**
 * The load model of a large installation: 1 million users and resources, 10,000 operations a day. The rates are those
 * of `capacity.md`, which explains them.
 */
export const openFlows = async (ground: Ground, operations: Operations): Promise<Flow[]> => {
  const sessions: Tokens[] = []
  // One after another: many at once for one name look like guessing.
  while (sessions.length < REFRESHED) sessions.push(await signIn(ground, 1))
  const refresh = refresher(ground, sessions)
  const held: string[] = []
  while (held.length < HELD) held.push(await startGates(operations, GATES))
  const waiting = Array.from({ length: GATES }, (_, at) => held.map((id) => [id, `g${at}`] as const)).flat()
  const [first = ''] = held
  const pages = [
    '/api/v1/inbox',
    '/api/v1/operations?page_size=50',
    `/api/v1/operations/${first}`,
    '/api/v1/resources?page_size=50',
  ]
  let page = 0
  let turn = 0
  return [
    {
      ...{ name: 'nodes', a_day: '10,000 operations of 20 nodes, peak 20 times the mean', peak: 46, callers: 4 },
      act: async () => {
        await runGraph(operations, NODES)
        return NODES
      },
    },
    {
      ...{ name: 'decisions', a_day: '100,000 votes, 80 % of them in two hours', peak: 11, callers: 4 },
      act: async () => {
        const next = waiting.shift()
        if (next === undefined) return 0
        await decide(operations, ...next)
        return 1
      },
    },
    {
      ...{ name: 'sign-ins', a_day: '10 % of 1 M users, a fifth of them in one hour', peak: 5.6, callers: 2 },
      act: async () => {
        turn += 1
        const { username, password } = ground.users[arrives(turn)] ?? { username: '', password: '' }
        return (await login(ground, username, password)).status === 200 ? 1 : 0
      },
    },
    {
      ...{ name: 'refreshes', a_day: '50,000 people signed in, one each 15 minutes', peak: 55, callers: REFRESHED },
      act: async (caller) => ((await refresh(caller)) ? 1 : 0),
    },
    {
      ...{ name: 'reads', a_day: '50,000 people signed in, a page each 100 seconds', peak: 500, callers: 4 },
      act: async () => {
        page += 1
        const { status } = await send(ground.gateway, {
          ...{ method: 'GET', path: pages[page % pages.length] ?? '' },
          headers: { authorization: `Bearer ${ground.token()}` },
        })
        return status === 200 ? 1 : 0
      },
    },
    {
      ...{ name: 'changes of resources', a_day: '800,000, peak 20 times the mean', peak: 185, callers: 4 },
      act: async () => {
        const name = uuidv7()
        const { status } = await send(ground.gateway, {
          ...{ method: 'POST', path: '/api/v1/resources?mode=record_only' },
          headers: { ...json, authorization: `Bearer ${ground.token()}`, 'idempotency-key': name },
          body: JSON.stringify({
            ...{ resource_id: name, type_key: 'infra.generic', name, lifecycle_status: 'active' },
            desired_state: { provider: 'bench', kind: 'rack' },
          }),
        })
        return status === 201 ? 1 : 0
      },
    },
  ]
}
