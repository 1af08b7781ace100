import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { hmacSha256 } from '../../shared/data/digest.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import { startHasher } from './hasher.ts'
import type { Asking, Lane, Slots } from './slots.ts'

export type HashParameters = { memory_kib: number; time: number; parallelism: number }

/** Hashes for strangers yield to everything else on the machine; those for people known here do not. */
const NICE: Record<Lane, number> = { general: 5, urgent: 0 }
/** How long the result of a comparison answers the same login again, and how many results are kept. */
const REMEMBERED_MS = 30_000
const MAX_REMEMBERED = 2000

type Comparison = { outcome: Promise<boolean>; callers: number; abandoned: AbortController }

/**
 * Argon2id behind the slots. `verify` costs exactly one full hash in every case. Without a stored hash it checks
 * against a dummy with the current parameters, so timing does not reveal who exists. A repeated login joins the hash
 * already started for it: on a busy machine, the work behind a late answer is not lost.
 */
export const createHashing = async (slots: Slots, parameters: HashParameters, telemetry: Telemetry) => {
  const options = {
    type: argon2.argon2id,
    version: 0x13,
    memoryCost: parameters.memory_kib,
    timeCost: parameters.time,
    parallelism: parameters.parallelism,
  } as const
  const hashers = { general: startHasher(NICE.general), urgent: startHasher(NICE.urgent) }
  const dummy = await hashers.general.hash(randomBytes(24).toString('base64'), options)
  const duration = telemetry.histogram('signalbox_hash_duration_seconds', 'Time of one Argon2id hash.', ['act'])
  const wait = telemetry.histogram('signalbox_hash_wait_seconds', 'Time that a hash waited for its slot.')
  const joined = telemetry.counter('signalbox_hash_joined_total', 'Logins that joined a hash already in progress.')
  const waiting = telemetry.gauge('signalbox_hash_waiting', 'Hashes that wait for a slot.')
  Object.assign(waiting, { collect: () => waiting.set(slots.waiting()) })

  const begin = <T>(act: 'hash' | 'verify', asking: Asking, run: (lane: Lane) => Promise<T>): Promise<T> => {
    const asked = performance.now()
    return slots.begin(asking, (lane) => {
      wait.observe((performance.now() - asked) / 1000)
      const done = duration.startTimer({ act })
      return run(lane).finally(done)
    })
  }

  const compare = (stored: string, password: string, asking: Asking): Comparison => {
    const abandoned = new AbortController()
    const outcome = begin('verify', { ...asking, signal: abandoned.signal }, (lane) =>
      hashers[lane].verify(stored, password, options),
    )
    return { outcome, callers: 0, abandoned }
  }

  const join = createJoining(compare, () => joined.inc())

  return {
    /**
     * Whether the password matches the stored hash; false, after the same work, if there is none. `login` identifies
     * the account and the password: it must differ between names, even those that nobody has.
     */
    verify: async (
      login: string,
      stored: string | undefined,
      password: string,
      { signal, ...asking }: Asking,
    ): Promise<boolean> => {
      const comparison = join(login, stored || dummy, password.normalize('NFC'), asking)
      comparison.callers += 1
      // A queued comparison that all callers have abandoned leaves the queue; a running one finishes, because it may be
      // asked for again.
      const gone = () => {
        comparison.callers -= 1
        if (comparison.callers === 0) comparison.abandoned.abort()
      }
      signal?.addEventListener('abort', gone, { once: true })
      const same = await slots.answer(comparison.outcome).finally(() => signal?.removeEventListener('abort', gone))
      return same && Boolean(stored)
    },
    hash: (password: string, asking: Asking): Promise<string> =>
      slots.answer(begin('hash', asking, (lane) => hashers[lane].hash(password.normalize('NFC'), options))),
    /** Whether a stored hash has other than the current parameters. */
    isOutdated: (stored: string): boolean => argon2.needsRehash(stored, options),
    close: () => {
      for (const hasher of Object.values(hashers)) hasher.close()
    },
  }
}
export type Hashing = Awaited<ReturnType<typeof createHashing>>

/** Returns the comparison already started for the very same login, or starts one. */
const createJoining = (
  compare: (stored: string, password: string, asking: Asking) => Comparison,
  onJoined: () => void,
) => {
  const key = randomBytes(32)
  const recent = new Map<string, Comparison>()
  return (login: string, stored: string, password: string, asking: Asking): Comparison => {
    const name = hmacSha256(key, JSON.stringify([login, stored])).toString('base64')
    const known = recent.get(name)
    if (known) {
      onJoined()
      return known
    }
    const comparison = compare(stored, password, asking)
    const forget = () => {
      if (recent.get(name) === comparison) recent.delete(name)
    }
    if (recent.size >= MAX_REMEMBERED) recent.delete(recent.keys().next().value as string)
    recent.set(name, comparison)
    comparison.outcome.then(() => setTimeout(forget, REMEMBERED_MS).unref(), forget)
    return comparison
  }
}
