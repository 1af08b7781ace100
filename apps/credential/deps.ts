import { createDb } from '../../db/client.ts'
import { pruneEnrolmentTokens } from '../../db/credential/queries.ts'
import { outbox } from '../../db/credential/tables.ts'
import { pruneEndedSetups } from '../../db/credential/totp.ts'
import { pruneOutbox } from '../../db/outbox.ts'
import { startPruning } from '../../db/prune.ts'
import { registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { keksOf } from '../shared/codec/kek.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import type { CredentialConfig } from './config.ts'
import { createHashing } from './hashing/hash.ts'
import { createSlots } from './hashing/slots.ts'
import { createStrengthEstimator } from './passwords/strength.ts'
import { resealTotps } from './totp/factor.ts'

/** Before the callers' 7.5 s, so that slowness is answered as busy and not taken for an outage. */
const ANSWER_MS = 7000
/** At most ten hashes run at once (the specification): one slot is reserved for people known here. */
const URGENT = 1
const MOST_GENERAL = 9

/** Opens the database and creates the dummy hash; calls no other app. */
export const createDeps = async (config: CredentialConfig, { clock = systemClock }: { clock?: Clock } = {}) => {
  const telemetry = createTelemetry('credential')
  const { db, pool, close } = createDb(config.CREDENTIAL__DATABASE__URL, { app: 'credential' })
  measurePool(telemetry, pool)
  const registry = registryOf(config, telemetry)
  const keks = keksOf(config.CREDENTIAL__FACTORS__KEK, 'CREDENTIAL__FACTORS__KEK')
  const reseal = () => resealTotps({ db, clock, keks })
  const onFailure = (err: unknown) => telemetry.log.warn({ err }, 'old rows cannot be removed or sealed again')
  const stopPruning = startPruning(
    [() => pruneEnrolmentTokens(db), () => pruneEndedSetups(db), () => pruneOutbox(db, outbox), reseal],
    onFailure,
  )
  // At once: the old key may have leaked.
  reseal().catch(onFailure)
  const slots = createSlots({
    concurrency: Math.min(config.CREDENTIAL__HASH__CONCURRENCY, MOST_GENERAL),
    urgent: URGENT,
    queue_max: config.CREDENTIAL__HASH__QUEUE_MAX,
    wait_ms: config.CREDENTIAL__HASH__QUEUE_WAIT_MS,
    per_key: config.CREDENTIAL__HASH__PER_KEY,
    answer_ms: ANSWER_MS,
  })
  const hashing = await createHashing(
    slots,
    {
      memory_kib: config.CREDENTIAL__HASH__MEMORY_KIB,
      time: config.CREDENTIAL__HASH__TIME,
      parallelism: config.CREDENTIAL__HASH__PARALLELISM,
    },
    telemetry,
  )
  const strength = createStrengthEstimator({ breached_file: config.CREDENTIAL__PASSWORDS__BREACHED_FILE })
  return {
    config,
    telemetry,
    db,
    pool,
    registry,
    hashing,
    strength,
    clock,
    keks,
    enrolment_key: Buffer.from(config.CREDENTIAL__ENROLMENT__KEY, 'base64'),
    close: async () => {
      stopPruning()
      registry.close()
      hashing.close()
      await strength.close()
      await close()
    },
  }
}
export type CredentialDeps = Awaited<ReturnType<typeof createDeps>>
