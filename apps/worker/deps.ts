import { createCatalogWriter } from '../../activities/catalog.client.ts'
import type { ActivityDeps } from '../../activities/deps.ts'
import { createExecutors } from '../../activities/executors/index.ts'
import { loadPolicy } from '../../activities/executors/policy.ts'
import { createStandingProver } from '../../activities/standing.client.ts'
import { createDb } from '../../db/client.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createServiceSigner, type ServiceSigner } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { WorkerConfig } from './config.ts'
import { createNats } from './nats.ts'

/** The dependencies of the worker's activities. It does not wait for NATS, the catalog or Temporal. */
export const createDeps = (config: WorkerConfig, telemetry: Telemetry, signer?: ServiceSigner) => {
  const { db, pool, close } = createDb(config.WORKER__DATABASE__URL, {
    app: 'worker',
    // An attempt takes two short statements. More connections would only prepare the same statements once more each.
    max: 16,
    statement_timeout_ms: 10_000,
  })
  measurePool(telemetry, pool)
  const policy = loadPolicy(config.WORKER__EXECUTORS__POLICY_FILE)
  const streamed = Object.keys(policy.places).filter((pool) => policy.agentsOf(pool)?.mode === 'nats')
  const nats = createNats(config.WORKER__NATS__URL, config.SIGNALBOX__NATS__PREFIX, telemetry.log, streamed)
  const sign = signer ?? createServiceSigner({ name: 'worker', key_file: config.WORKER__SERVICE__KEY_FILE })
  let leaving = new AbortController()
  const attempts = telemetry.counter('signalbox_node_attempts_total', 'Attempts of nodes by executor and result.', [
    'executor',
    'result',
  ])
  const seconds = telemetry.histogram('signalbox_executor_seconds', 'Time an executor took.', ['executor'])
  const refused = telemetry.counter('signalbox_claims_refused_total', 'Claims refused by reason.', ['reason'])
  const activities: ActivityDeps = {
    db,
    pool,
    log: telemetry.log,
    policy,
    agents: nats.agents,
    executors: createExecutors(policy, {
      pool,
      agents_url: config.WORKER__AGENTS__URL ?? `${config.WORKER__OPERATIONS__URL}/internal/v1`,
      agents: nats.agents,
      env: process.env,
    }),
    secrets_dir: config.WORKER__EXECUTORS__SECRETS_DIR,
    env: process.env,
    catalog: createCatalogWriter(config.OPERATIONS__CATALOG__URL, sign),
    standing: createStandingProver(config.WORKER__OPERATIONS__URL, sign, telemetry.log),
    get leave() {
      return leaving.signal
    },
    limits: {
      max_parallel: config.WORKER__OPERATION__MAX_PARALLEL,
      slice_s: config.WORKER__ACTIVITY__SLICE_S,
      force_grace_s: config.OPERATIONS__CANCEL__FORCE_GRACE_S,
      standing_s: config.OPERATIONS__GATES__STANDING_S,
    },
    wake: nats.wake,
    observe: {
      attempt: (executor, result, took) => {
        attempts.inc({ executor, result })
        seconds.observe({ executor }, took)
      },
      refused: (reason) => refused.inc({ reason }),
    },
  }
  return {
    config,
    telemetry,
    pool,
    activities,
    /** Tells waiting attempts to end here and resume elsewhere. */
    leave: () => leaving.abort(),
    /** Attempts that begin from here on do not know of an earlier leave. */
    stay: () => {
      if (leaving.signal.aborted) leaving = new AbortController()
    },
    close: async () => {
      await nats.close()
      await close()
    },
  }
}
export type WorkerDeps = ReturnType<typeof createDeps>
