import { setTimeout as delay } from 'node:timers/promises'
import type { Link } from '../support/link.ts'
import { LINKED, type Links, type Stack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import type { Dice } from './dice.ts'

/** The processes that may die at any moment; not the fleet, which is the witness. */
export const VICTIMS = [
  'worker',
  'operations',
  'relay',
  'catalog',
  'gateway',
  'session',
  'identity',
  'credential',
  'token',
  'nats',
  'redis',
  'temporal',
  'postgres',
] as const
export type Victim = (typeof VICTIMS)[number]

const BACK_MS = 120_000
const LONGEST_STALL_MS = 8000

export type Deaths = Map<string, number[]>
/** How long each process was away in milliseconds, how many were stopped, and how often a link to a server failed. */
export type Harmed = { deaths: Deaths; stalls: number; breaks: number }
export type Harm = (with_: {
  /** A separate one for each purpose, so that none depends on how often another is thrown. */
  dice: (n: number) => Dice
  say: (what: string) => void
}) => Promise<Harmed>

/** Kills and stalls processes and breaks links at random moments, on average `gap_s` seconds apart. */
export const atRandom =
  (stack: Stack, { kills, gap_s }: { kills: number; gap_s: number }): Harm =>
  async ({ dice, say }) => {
    let over = false
    const stalling = stallAtRandom(stack, {
      dice: dice(3),
      gap_s,
      goes: () => !over,
      stalled: (name) => say(`${name} stands still`),
    })
    const breaking = breakAtRandom(stack.links, { dice: dice(4), gap_s, goes: () => !over, broken: say })
    const killed = (n: number, name: Victim) => say(`kill ${n} of ${kills}: ${name}`)
    const deaths = await killAtRandom(stack, { kills, dice: dice(0), gap_s, killed })
    over = true
    return { deaths, stalls: await stalling, breaks: await breaking }
  }

/**
 * Kills the requested number of processes, each at a random moment and without waiting for the previous one to be back:
 * the supervisor restarts them. Returns, when all are back, how long each was away in milliseconds.
 */
const killAtRandom = async (
  stack: Stack,
  {
    kills,
    dice,
    gap_s,
    killed,
  }: { kills: number; dice: Dice; gap_s: number; killed: (n: number, name: Victim) => void },
): Promise<Deaths> => {
  const deaths: Deaths = new Map<Victim, number[]>(VICTIMS.map((name) => [name, []]))
  const down = new Map<Victim, Promise<void>>()
  for (let n = 1; n <= kills; n++) {
    await delay(dice.between(0, 2 * gap_s * 1000))
    // Two may be down at once; a third kill waits for one of them, or nothing would be left to test.
    while (down.size > 1) await Promise.race(down.values())
    const name = dice.pick(VICTIMS.filter((victim) => !down.has(victim)))
    killed(n, name)
    const back = strike(stack, name).then((away_ms) => {
      deaths.get(name)?.push(away_ms)
      down.delete(name)
    })
    down.set(name, back)
  }
  await Promise.all(down.values())
  return deaths
}

/**
 * Stops processes for a moment, as a swapping machine or a debugger does: no one is notified, and their work resumes
 * afterward. Returns how many it stopped.
 */
const stallAtRandom = async (
  stack: Stack,
  { dice, gap_s, goes, stalled }: { dice: Dice; gap_s: number; goes: () => boolean; stalled: (name: Victim) => void },
): Promise<number> => {
  let count = 0
  for (;;) {
    await delay(dice.between(gap_s * 1000, 4 * gap_s * 1000))
    if (!goes()) return count
    const name = dice.pick(VICTIMS)
    stalled(name)
    stack.pause(name)
    await delay(dice.between(1000, LONGEST_STALL_MS))
    stack.resume(name)
    count += 1
  }
}

const BREAKS = {
  'is cut': (link: Link) => link.cut(),
  'swallows all': (link: Link) => link.freeze(),
  'is slow': (link: Link) => link.slow(100),
}

/** The link to a server ends all connections, passes nothing for a moment, or is slow. Returns how often. */
const breakAtRandom = async (
  links: Links | undefined,
  { dice, gap_s, goes, broken }: { dice: Dice; gap_s: number; goes: () => boolean; broken: (what: string) => void },
): Promise<number> => {
  let count = 0
  while (links) {
    await delay(dice.between(gap_s * 1000, 4 * gap_s * 1000))
    if (!goes()) break
    const [name, how] = [dice.pick(LINKED), dice.pick(Object.keys(BREAKS) as (keyof typeof BREAKS)[])]
    broken(`the link to ${name} ${how}`)
    BREAKS[how](links[name])
    await delay(dice.between(500, LONGEST_STALL_MS))
    links[name].mend()
    count += 1
  }
  return count
}

const strike = async (stack: Stack, name: Victim): Promise<number> => {
  const before = stack.pid(name)
  const died = performance.now()
  stack.strike(name)
  await until(() => stack.pid(name) !== before, { timeout_ms: BACK_MS, what: `a new process of ${name}` })
  await stack.ready(name)
  return performance.now() - died
}
