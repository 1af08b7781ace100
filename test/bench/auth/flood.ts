import { quantile } from '../lib/graph.ts'
import { closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, failIfAny, login, of, ROUNDS, type Row, reader, refresher, type Tokens } from './clients.ts'

const FLOOD = 200
const LIGHT_MS = 2500

/** How 200 logins at once, from 200 addresses, affect users who are already signed in. */
export const benchFlood = async (bench: Bench, sessions: Tokens[], { access_token }: Tokens): Promise<Row[]> => {
  const verify = reader(bench.gateway, '/api/v1/resources', access_token)
  const refresh = refresher(bench, sessions)
  const light = async () => {
    const [refreshes, verified] = await Promise.all([closedLoop(2, LIGHT_MS, refresh), closedLoop(2, LIGHT_MS, verify)])
    failIfAny('refresh', refreshes)
    failIfAny('verify', verified)
    return { refresh: quantile(refreshes.times_ms, 0.99), verify: quantile(verified.times_ms, 0.99) }
  }
  const flood = (round: number) =>
    Promise.all(
      Array.from({ length: FLOOD }, async (_, i) => {
        const begun = performance.now()
        const { status } = await login(bench, `ghost-${round}-${i}`, 'Wrong-Horse-7-Battery')
        return { status, ms: performance.now() - begun }
      }),
    )
  type Light = Awaited<ReturnType<typeof light>>
  const rounds: { idle: Light; flooded: Light; answers: Awaited<ReturnType<typeof flood>> }[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`${FLOOD} logins at once, round ${round} of ${ROUNDS}`)
    const idle = await light()
    const [flooded, answers] = await Promise.all([light(), flood(round)])
    rounds.push({ idle, flooded, answers })
  }
  const pair = (key: keyof Light) => ({
    flooded: of(rounds, (round) => round.flooded[key]),
    idle: of(rounds, (round) => round.idle[key]),
    ratio: of(rounds, (round) => round.flooded[key] / round.idle[key]),
  })
  const [refreshes, verified] = [pair('refresh'), pair('verify')]
  const answers = rounds.flatMap((round) => round.answers)
  const refused = answers.filter(({ status }) => status === 503).map(({ ms }) => ms)
  const statuses = Object.fromEntries(
    [...new Set(answers.map(({ status }) => status))].map((status) => [
      status,
      answers.filter((answer) => answer.status === status).length,
    ]),
  )
  const slowest = refused.length > 0 ? Math.max(...refused) : 0
  printFigure({
    figure: 'flood',
    refresh_p99_ms: refreshes,
    verify_p99_ms: verified,
    statuses,
    slowest_503_ms: slowest,
    rounds: ROUNDS,
  })
  const row = (what: string, { flooded, idle, ratio }: typeof refreshes): Row => [
    `${what} p99 beside ${FLOOD} logins`,
    `${flooded.toFixed(1)} ms`,
    `${idle.toFixed(1)} ms idle`,
    `${ratio.toFixed(2)} (aim < 2)`,
  ]
  return [
    row('refresh', refreshes),
    row('verify', verified),
    ['slowest 503 of the flood', `${slowest.toFixed(0)} ms`, '', `aim <= 2100 ms; ${JSON.stringify(statuses)}`],
  ]
}
