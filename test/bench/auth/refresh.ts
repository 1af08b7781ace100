import { cpuSince } from '../lib/cpu.ts'
import { ask, type Bare, forkBare } from '../lib/fork.ts'
import { quantile } from '../lib/graph.ts'
import { closedLoop, send } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import {
  type Bench,
  failIfAny,
  json,
  of,
  type Physics,
  REFRESHERS,
  ROUNDS,
  type Row,
  refresher,
  type Tokens,
  us,
} from './clients.ts'

const AUTH_APPS = ['gateway', 'session', 'token', 'identity'] as const

/** The bare processes of a refresh; each knows the ones that it calls. */
export const forkChain = async (redis_url: string): Promise<Record<string, Bare<number>>> => {
  const link = (role: string, ...next: Bare<number>[]) =>
    forkBare<number>('link', [role, redis_url, ...next.map(({ first }) => `http://127.0.0.1:${first}`)])
  const [identity, token] = await Promise.all([link('identity'), link('token')])
  const session = await link('session', identity, token)
  return { identity, token, session, gateway: await link('gateway', session) }
}

/** One refresh through the bare processes. */
const bareRefresher =
  ({ chain }: Bench, sessions: Tokens[]) =>
  async (worker: number) => {
    const body = JSON.stringify({ refresh_token: sessions[worker]?.refresh_token })
    return (await send(chain, { method: 'POST', path: '/', headers: json, body })).status === 200
  }

/** Refreshes per second and their CPU in all auth processes, against two signatures and one verification, alone and in bare processes. */
export const benchRefresh = async (bench: Bench, sessions: Tokens[]): Promise<Row[]> => {
  const pids = Object.fromEntries(AUTH_APPS.map((name) => [name, bench.stack.pid(name) ?? 0]))
  const chain_pids = Object.fromEntries(Object.entries(bench.bares.chain).map(([name, { pid }]) => [name, pid]))
  const measure = async (what: string, pids: Record<string, number>, call: (worker: number) => Promise<boolean>) => {
    const cpu = cpuSince(pids)
    const arm = await closedLoop(REFRESHERS, 3000, call)
    failIfAny(what, arm)
    const by_app = Object.fromEntries(Object.entries(cpu()).map(([name, ms]) => [name, ms / arm.count]))
    return { arm, by_app, cpu_ms: Object.values(by_app).reduce((sum, ms) => sum + ms, 0) }
  }
  type Measured = Awaited<ReturnType<typeof measure>>
  const [refresh, bareRefresh] = [refresher(bench, sessions), bareRefresher(bench, sessions)]
  await closedLoop(REFRESHERS, 1000, bareRefresh)
  const rounds: { ours: Measured; chain: Measured; bare: Physics }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`refresh, round ${round} of ${ROUNDS}`)
    rounds.push({
      ours: await measure('refresh', pids, refresh),
      chain: await measure('bare refresh', chain_pids, bareRefresh),
      bare: await ask(bench.bares.crypto, { kind: 'rs256', ms: 1500 }),
    })
  }
  const by_app = Object.fromEntries(AUTH_APPS.map((name) => [name, of(rounds, ({ ours }) => ours.by_app[name] ?? 0)]))
  const total = of(rounds, ({ ours }) => ours.cpu_ms)
  const chain = of(rounds, (round) => round.chain.cpu_ms)
  const bare = of(rounds, (round) => round.bare.cpu_ms / round.bare.count)
  const per_s = of(rounds, ({ ours }) => ours.arm.per_s)
  const chain_per_s = of(rounds, (round) => round.chain.arm.per_s)
  const p99 = of(rounds, ({ ours }) => quantile(ours.arm.times_ms, 0.99))
  printFigure({
    figure: 'refresh',
    per_s,
    p99_ms: p99,
    cpu_ms: total,
    cpu_ms_by_app: by_app,
    chain_per_s,
    chain_cpu_ms: chain,
    bare_cpu_ms: bare,
    ratio: total / bare,
    added_cpu_ms: total - bare,
    rounds: ROUNDS,
  })
  return [
    [
      'refreshes per second',
      per_s.toFixed(0),
      chain_per_s.toFixed(0),
      `p99 ${p99.toFixed(1)} ms, ${REFRESHERS} at a time`,
    ],
    ['CPU per refresh, all auth apps', us(total), us(chain), `${(total / chain).toFixed(2)} of bare processes`],
    ['CPU per refresh beside signatures', us(total - bare), us(chain - bare), 'aim <= 1100 us'],
    ['  the signatures themselves', '', us(bare), ''],
    ...AUTH_APPS.map((name): Row => [`  of it in ${name}`, us(by_app[name] ?? 0), '', '']),
  ]
}
