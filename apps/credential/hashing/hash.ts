import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import type { Telemetry } from '../../shared/telemetry.ts'
import type { Slots } from './slots.ts'

export type HashParameters = { memory_kib: number; time: number; parallelism: number }

/**
 * Argon2id behind the slots. `verify` costs exactly one full hash whether or not there is something to compare with:
 * without a stored hash it checks against a dummy of the current parameters, so time does not tell who exists.
 */
export const createHashing = async (slots: Slots, parameters: HashParameters, telemetry: Telemetry) => {
  const options = {
    type: argon2.argon2id,
    version: 0x13,
    memoryCost: parameters.memory_kib,
    timeCost: parameters.time,
    parallelism: parameters.parallelism,
  } as const
  const dummy = await argon2.hash(randomBytes(24), options)
  const duration = telemetry.histogram('hash_duration_seconds', 'Time of one Argon2id hash.', ['act'])
  const wait = telemetry.histogram('hash_wait_seconds', 'Time that a hash waited for its slot.')
  const waiting = telemetry.gauge('hash_waiting', 'Hashes that wait for a slot.')

  const timed = <T>(
    act: 'hash' | 'verify',
    queue_key: string,
    run: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> => {
    const asked = performance.now()
    const outcome = slots.run(
      queue_key,
      async () => {
        wait.observe((performance.now() - asked) / 1000)
        const done = duration.startTimer({ act })
        return run().finally(done)
      },
      signal,
    )
    waiting.set(slots.waiting())
    return outcome.finally(() => waiting.set(slots.waiting()))
  }

  return {
    /** Whether the password is the one of the stored hash; false, after the same work, when there is none. */
    verify: (stored: string | undefined, password: string, queue_key: string, signal?: AbortSignal): Promise<boolean> =>
      timed('verify', queue_key, () => argon2.verify(stored || dummy, password.normalize('NFC')), signal).then(
        (same) => same && Boolean(stored),
      ),
    hash: (password: string, queue_key: string, signal?: AbortSignal): Promise<string> =>
      timed('hash', queue_key, () => argon2.hash(password.normalize('NFC'), options), signal),
    /** Whether a stored hash has other parameters than those of now. */
    isOutdated: (stored: string): boolean => argon2.needsRehash(stored, options),
  }
}
export type Hashing = Awaited<ReturnType<typeof createHashing>>
