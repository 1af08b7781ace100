import { cpus, loadavg } from 'node:os'
import { table } from '../../apps/shared/data/print.ts'
import { packFolder } from '../bench/operations/hosts.ts'
import { numbersGiven } from '../support/numbers.ts'
import { startStack } from '../support/stack.ts'
import { meetCrowd, type Role } from './crowd.ts'

/**
 * `npm run test:overload [-- --seconds 60 --connections 400]`: its own platform, one person who lists over many
 * connections, and next to them people who stop, decide, read and sign in. Exits 1 if a stop or a decision is refused,
 * or one of the aims of platform.md 7.1 is missed.
 */
const { seconds, connections } = numbersGiven('test:overload', { seconds: 60, connections: 400 })

/** The limits for a role: the share of answers that are refused, and the 99th percentile in milliseconds. */
const AIMS: Record<string, { refused: number; p99: number }> = {
  stop: { refused: 0, p99: 500 },
  decide: { refused: 0, p99: 1000 },
  'look at a gate': { refused: 0, p99: 1000 },
  'list by others': { refused: 0.05, p99: Number.POSITIVE_INFINITY },
}
const REFUSAL_P99_MS = 100

const missed = ({ name, statuses, refused, p99 }: Role): boolean => {
  const aim = AIMS[name]
  const count = Object.values(statuses).reduce((sum, one) => sum + one, 0)
  return aim !== undefined && (refused > aim.refused * count || p99 > aim.p99)
}

const stack = await startStack({
  own_servers: ['postgres', 'redis', 'nats', 'temporal'],
  env_overrides: {
    OPERATIONS__PACKS__DIR: packFolder(),
    // As in production; other tests raise these.
    SIGNALBOX__PRESSURE__UTILISATION: '0.95',
    SIGNALBOX__PRESSURE__DELAY_MS: '250',
    GATEWAY__PRESSURE__DELAY_MS: '250',
  },
})
process.exitCode = 1
try {
  const { roles, refusal_p99, cpu } = await meetCrowd(stack, {
    seconds,
    connections,
    operations: Math.ceil(seconds / 3),
    gates: 50,
  })
  const rows = roles.map((role) => [
    `${role.name}${missed(role) ? ' MISSED' : ''}`,
    JSON.stringify(role.statuses),
    String(role.refused),
    role.p50.toFixed(0),
    role.p99.toFixed(0),
    missed(role) ? JSON.stringify(role.codes) : '',
  ])
  console.log(`\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}\n`)
  for (const line of table(['who', 'answers', 'refused', 'p50 ms', 'p99 ms', 'why'], rows)) console.log(line)
  const late = refusal_p99 > REFUSAL_P99_MS
  console.log(`\nrefusals: p99 ${refusal_p99.toFixed(0)} ms (aim <= ${REFUSAL_P99_MS})${late ? ' MISSED' : ''}`)
  const answers = roles.reduce((sum, { statuses }) => sum + Object.values(statuses).reduce((a, b) => a + b, 0), 0)
  const parts = Object.entries(cpu).toSorted((a, b) => b[1] - a[1])
  console.log(`\nCPU in the time of the crowd, ms for each of ${answers} answers, s in all:`)
  for (const [name, ms] of parts.filter(([, ms]) => ms >= 100))
    console.log(`  ${name.padEnd(18)} ${(ms / answers).toFixed(3)}  ${(ms / 1000).toFixed(1)}`)
  if (!late && !roles.some(missed)) process.exitCode = 0
} finally {
  await stack.stop()
}
