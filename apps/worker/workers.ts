import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DefaultLogger, Runtime } from '@temporalio/worker'
import { dataConverterOf, FAILURES, loadPayloadCodec } from '../shared/codec/payload.ts'
import { bundleOnce } from './bundle.ts'
import { connect } from './connect.ts'
import type { WorkerDeps } from './deps.ts'
import { createEngineMetrics } from './engine.metrics.ts'

const workflows = (file: string) => fileURLToPath(new URL(`../../workflows/${file}`, import.meta.url))
const RETRY_MS = 1000
/** How often the API key is read again, and new certificates are taken. */
const RENEW_MS = 10_000

/** The SDK's own log goes into ours; its core logs warnings and worse. Its metrics are shown with ours. */
const installRuntime = ({ telemetry }: WorkerDeps) => {
  const { log } = telemetry
  const metrics = createEngineMetrics(telemetry)
  const write = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => log[write[level]]({ ...meta }, message)),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' }, metrics: metrics.options },
    shutdownSignals: [],
  })
  return metrics.start()
}

/**
 * Runs the Temporal workers of this process: `workflow` for decisions and bookkeeping, `execution` for node work. While
 * Temporal is away it keeps trying to connect; work in progress survives in Temporal and Postgres.
 */
export const startWorkers = (deps: WorkerDeps) => {
  const endMetrics = installRuntime(deps)
  const roles = deps.config.WORKER__ROLES.split(',')
  const dataConverter = dataConverterOf(
    loadPayloadCodec('WORKER__TEMPORAL__PAYLOAD_KEYS', deps.config.WORKER__TEMPORAL__PAYLOAD_KEYS),
  )
  let running: Awaited<ReturnType<typeof connect>> | undefined
  let stopping = false

  const keepRunning = async () => {
    const bundle = roles.includes('workflow')
      ? await bundleOnce({
          workflowsPath: workflows('index.ts'),
          preloadModules: [workflows('preload.ts')],
          ...(dataConverter && { failureConverterPath: FAILURES }),
          logger: quiet,
        })
      : undefined
    while (!stopping) {
      try {
        running = await connect(deps, roles, bundle, dataConverter)
        deps.telemetry.log.info({ roles }, 'polling')
        if (stopping) break
        deps.stay()
        await Promise.all(running.runs)
      } catch (error) {
        deps.telemetry.log.warn({ err: error }, 'Temporal is unavailable; trying again')
      }
      // If one of the workers failed, the other still works: no stop would reach it later.
      await leave()
      running = undefined
      if (!stopping) await delay(RETRY_MS)
    }
  }
  const warn = (error: unknown) =>
    deps.telemetry.log.warn({ err: error }, 'the connection to Temporal cannot be renewed')
  const leave = async () => {
    deps.leave()
    await running?.end()
  }
  const renewal = setInterval(() => void running?.renew().catch(warn), RENEW_MS)
  const done = keepRunning()
  done.catch((error) => {
    deps.telemetry.log.fatal({ err: error }, 'the workflow code does not build')
    process.exit(1)
  })

  return {
    isPolling: () => running?.workers.every((worker) => worker.getState() === 'RUNNING') ?? false,
    /** Waiting attempts resume elsewhere; running ones may finish (20 s), then are canceled (30 s): operations.md 8. */
    stop: async () => {
      stopping = true
      clearInterval(renewal)
      await leave()
      endMetrics()
    },
  }
}

const quiet = new DefaultLogger('WARN')
