import { cpuSince } from '../lib/cpu.ts'
import { quantile } from '../lib/graph.ts'
import { closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, failIfAny, of, ROUNDS, type Row, reader, us } from './clients.ts'

const BUSY = 32
const QUIET = 2

/** Verified requests with limits and revocation against a bare pass-through to the same upstream, and one that counts in Redis. */
export const benchGateway = async (bench: Bench, access_token: string): Promise<Row[]> => {
  const arms = {
    ours: { call: reader(bench.gateway, '/api/v1/resources', access_token), pid: bench.stack.pid('gateway') ?? 0 },
    bare: { call: reader(bench.proxy, '/v1/resources', access_token), pid: bench.bares.proxy.pid },
    counting: { call: reader(bench.counting, '/v1/resources', access_token), pid: bench.bares.counting.pid },
  }
  for (const { call } of Object.values(arms)) await closedLoop(BUSY, 500, call)
  const measure = async ({ call, pid }: (typeof arms)['ours']) => {
    const cpu = cpuSince({ pid })
    const busy = await closedLoop(BUSY, 2000, call)
    const cpu_ms = (cpu().pid ?? 0) / busy.count
    const quiet = await closedLoop(QUIET, 1000, call)
    failIfAny('verified requests', busy)
    return { per_s: busy.per_s, cpu_ms, p50: quantile(quiet.times_ms, 0.5), p99: quantile(quiet.times_ms, 0.99) }
  }
  type Measured = Awaited<ReturnType<typeof measure>>
  const rounds: Record<keyof typeof arms, Measured>[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`verified requests, round ${round} of ${ROUNDS}`)
    rounds.push({
      bare: await measure(arms.bare),
      counting: await measure(arms.counting),
      ours: await measure(arms.ours),
    })
  }
  const pair = (key: keyof Measured) => ({
    ours: of(rounds, (round) => round.ours[key]),
    bare: of(rounds, (round) => round.bare[key]),
    ratio: of(rounds, (round) => round.ours[key] / round.bare[key]),
    added: of(rounds, (round) => round.ours[key] - round.bare[key]),
    counting: of(rounds, (round) => round.counting[key] / round.bare[key]),
  })
  const [rate, cpu, p50, p99] = [pair('per_s'), pair('cpu_ms'), pair('p50'), pair('p99')]
  printFigure({ figure: 'verified_requests', per_s: rate, cpu_ms: cpu, p50_ms: p50, p99_ms: p99, rounds: ROUNDS })
  return [
    [
      'verified requests per second',
      rate.ours.toFixed(0),
      rate.bare.toFixed(0),
      `${rate.ratio.toFixed(2)} (aim >= 0.7)`,
    ],
    ['  of a proxy that counts each in Redis', '', '', rate.counting.toFixed(2)],
    ['gateway CPU per request', us(cpu.ours), us(cpu.bare), `+${us(cpu.added)} (aim <= 100 us)`],
    ['time of a request, p99', us(p99.ours), us(p99.bare), `+${us(p99.added)} (aim <= 2000 us)`],
  ]
}
