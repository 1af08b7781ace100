import { cpuSince } from '../lib/cpu.ts'
import { ask } from '../lib/fork.ts'
import { quantile } from '../lib/graph.ts'
import { type Arm, closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import {
  type Bench,
  failIfAny,
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

/** Refreshes per second and their CPU in all auth processes, against two signatures and one verification. */
export const benchRefresh = async (bench: Bench, sessions: Tokens[]): Promise<Row[]> => {
  const pids = Object.fromEntries(AUTH_APPS.map((name) => [name, bench.stack.pid(name) ?? 0]))
  const refresh = refresher(bench, sessions)
  const rounds: { ours: Arm; cpu: Record<string, number>; bare: Physics }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`refresh, round ${round} of ${ROUNDS}`)
    const cpu = cpuSince(pids)
    const ours = await closedLoop(REFRESHERS, 3000, refresh)
    const used = cpu()
    failIfAny('refresh', ours)
    rounds.push({ ours, cpu: used, bare: await ask(bench.bares.crypto, { kind: 'rs256', ms: 1500 }) })
  }
  const each = (name: string) => of(rounds, ({ cpu, ours }) => (cpu[name] ?? 0) / ours.count)
  const by_app = Object.fromEntries(AUTH_APPS.map((name) => [name, each(name)]))
  const total = of(rounds, ({ cpu, ours }) => Object.values(cpu).reduce((sum, ms) => sum + ms, 0) / ours.count)
  const bare = of(rounds, (round) => round.bare.cpu_ms / round.bare.count)
  const per_s = of(rounds, ({ ours }) => ours.per_s)
  const p99 = of(rounds, ({ ours }) => quantile(ours.times_ms, 0.99))
  printFigure({
    figure: 'refresh',
    per_s,
    p99_ms: p99,
    cpu_ms: total,
    cpu_ms_by_app: by_app,
    bare_cpu_ms: bare,
    ratio: total / bare,
    added_cpu_ms: total - bare,
    rounds: ROUNDS,
  })
  return [
    ['refreshes per second', per_s.toFixed(0), '', `p99 ${p99.toFixed(1)} ms, ${REFRESHERS} at a time`],
    ['CPU per refresh, all auth apps', us(total), us(bare), `${(total / bare).toFixed(2)} (aim <= 2)`],
    ['CPU per refresh beside signatures', us(total - bare), '', 'aim <= 1100 us'],
    ...AUTH_APPS.map((name): Row => [`  of it in ${name}`, us(by_app[name] ?? 0), '', '']),
  ]
}
