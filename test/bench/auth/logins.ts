import { availableParallelism } from 'node:os'
import { residentMib } from '../lib/cpu.ts'
import { ask } from '../lib/fork.ts'
import { type Arm, closedLoop } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, of, type Physics, ROUNDS, type Row, signIn } from './clients.ts'

/** Logins per second against bare Argon2id with the same parameters, and the memory that credential uses for them. */
export const benchLogins = async (bench: Bench): Promise<Row[]> => {
  const pid = bench.stack.pid('credential') ?? 0
  const hashes = Math.min(10, Math.max(2, availableParallelism()))
  const rounds: { ours: Arm; bare: Physics }[] = []
  let resident = 0
  for (let round = 1; round <= ROUNDS; round++) {
    console.error(`logins, round ${round} of ${ROUNDS}`)
    const bare = await ask<Physics>(bench.bares.crypto, { kind: 'argon2id', ms: 3000 })
    const watch = setInterval(() => {
      resident = Math.max(resident, residentMib(pid))
    }, 20)
    const ours = await closedLoop(10, 3000, async (worker) => (await signIn(bench, worker)).access_token !== '')
    clearInterval(watch)
    rounds.push({ ours, bare })
  }
  const ours = of(rounds, (round) => round.ours.per_s)
  const bare = of(rounds, (round) => round.bare.count / round.bare.seconds)
  const ratio = of(rounds, (round) => (round.ours.per_s * round.bare.seconds) / round.bare.count)
  printFigure({ figure: 'logins', per_s: ours, bare_per_s: bare, ratio, rounds: ROUNDS })
  printFigure({ figure: 'credential_resident', mib: resident, hashes })
  return [
    ['logins per second', ours.toFixed(1), bare.toFixed(1), `${ratio.toFixed(2)} (aim >= 0.9)`],
    ['memory of credential, ten logins at once', `${resident.toFixed(0)} MiB`, `${hashes * 64} MiB`, 'aim < 900 MiB'],
  ]
}
