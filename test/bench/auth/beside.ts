import { cpuSince } from '../lib/cpu.ts'
import { closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, failIfAny, of, REFRESHERS, ROUNDS, type Row, refresher, type Tokens, us } from './clients.ts'

const APPS = ['gateway', 'session', 'token', 'identity', 'credential'] as const

export type Calls = Record<string, (worker: number) => Promise<boolean>>
type Cost = { per_s: number; cpu_ms: number; by_app: Record<string, number> }

/** What each call costs in all auth apps, alternating with refreshes in the same run. */
export const besideRefresh = async (
  figure: string,
  bench: Bench,
  sessions: Tokens[],
  calls: Calls,
  /** The cost of a call that is never made alone: the first total minus the second. */
  parts: Record<string, readonly [string, string]> = {},
): Promise<Row[]> => {
  const pids = Object.fromEntries(APPS.map((name) => [name, bench.stack.pid(name) ?? 0]))
  const measure = async (what: string, call: Calls[string], ms = 1500): Promise<Cost> => {
    const cpu = cpuSince(pids)
    const arm = await closedLoop(REFRESHERS, ms, call)
    failIfAny(what, arm)
    const by_app = Object.fromEntries(Object.entries(cpu()).map(([app, used]) => [app, used / arm.count]))
    return { per_s: arm.per_s, by_app, cpu_ms: Object.values(by_app).reduce((sum, one) => sum + one, 0) }
  }
  const arms: Calls = { refresh: refresher(bench, sessions), ...calls }
  // The first sign-ins create accounts, and the engine compiles the arms' code.
  for (const [what, call] of Object.entries(arms)) await measure(what, call, 2000)
  const rounds: Record<string, Cost>[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`${figure}, round ${round} of ${ROUNDS}`)
    const row: (typeof rounds)[number] = {}
    for (const [what, call] of Object.entries(arms)) row[what] = await measure(what, call)
    rounds.push(row)
  }
  const cpuOf = (what: string) => of(rounds, (row) => row[what]?.cpu_ms ?? 0)
  const refresh = cpuOf('refresh')
  const figures: Record<string, { per_s?: number; cpu_ms: number; of_refresh: number; by_app?: object }> = {}
  for (const what of Object.keys(arms)) {
    const cpu_ms = cpuOf(what)
    const by_app = Object.fromEntries(APPS.map((app) => [app, of(rounds, (row) => row[what]?.by_app[app] ?? 0)]))
    figures[what] = { per_s: of(rounds, (row) => row[what]?.per_s ?? 0), cpu_ms, of_refresh: cpu_ms / refresh, by_app }
  }
  for (const [what, [all, rest]] of Object.entries(parts)) {
    const cpu_ms = of(rounds, (row) => (row[all]?.cpu_ms ?? 0) - (row[rest]?.cpu_ms ?? 0))
    figures[what] = { cpu_ms, of_refresh: cpu_ms / refresh }
  }
  printFigure({ figure, rounds: ROUNDS, arms: figures })
  return Object.entries(figures).map(
    ([what, { per_s, cpu_ms, of_refresh }]): Row => [
      `${what}: per second; CPU`,
      `${per_s === undefined ? '' : `${per_s.toFixed(0)}; `}${us(cpu_ms)}`,
      us(refresh),
      `${of_refresh.toFixed(2)} of a refresh; two cores carry ${(2000 / cpu_ms).toFixed(0)}/s`,
    ],
  )
}
