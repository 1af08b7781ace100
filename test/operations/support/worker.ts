import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Runtime } from '@temporalio/worker'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { createTelemetry } from '../../../apps/shared/telemetry.ts'
import { loadWorkerConfig } from '../../../apps/worker/config.ts'
import { createDeps } from '../../../apps/worker/deps.ts'
import { startWorkers } from '../../../apps/worker/workers.ts'
import { serverUrl } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import type { Platform } from './platform.ts'

/** Those of a worker on the database and the queues of this platform. */
export const workerSettings = (p: Platform, policy_file: string) => ({
  WORKER__DATABASE__URL: p.config.OPERATIONS__DATABASE__URL,
  WORKER__NATS__URL: serverUrl('NATS_URL'),
  WORKER__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
  WORKER__TEMPORAL__QUEUE_PREFIX: p.prefix,
  WORKER__SERVICE__KEY_FILE: p.services.keyFile('worker'),
  SIGNALBOX__NATS__PREFIX: p.prefix,
  WORKER__OPERATIONS__URL: p.running[0]?.internal_url,
  WORKER__EXECUTORS__POLICY_FILE: policy_file,
})

/** The worker as a separate process, which a test may kill. */
export const spawnWorker = (p: Platform, policy_file: string, crash_at = '') => {
  const env = {
    ...{ ...process.env, ...workerSettings(p, policy_file) },
    ...{ WORKER__INTERNAL__PORT: '0', SIGNALBOX_CRASH_AT: crash_at },
  }
  const child = spawn(process.execPath, [join(ROOT, 'apps/worker/main.ts')], { cwd: ROOT, stdio: 'ignore', env })
  const ended = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { stop, end: stop, ended }
}

/** The worker as it runs, on the database and the queues of this platform. */
export const startWorker = async (p: Platform, policy_file: string, more: Record<string, string> = {}) => {
  const config = loadWorkerConfig({ ...workerSettings(p, policy_file), ...more })
  const deps = createDeps(config, createTelemetry('worker'))
  const worker = startWorkers(deps)
  await until(() => worker.isPolling(), { what: 'the worker polling' })
  return {
    isPolling: worker.isPolling,
    stop: async () => {
      await worker.stop()
      await deps.close()
    },
    /** The engine's runtime keeps this process alive; it cannot be used after this. */
    end: () => Runtime.instance().shutdown(),
  }
}
