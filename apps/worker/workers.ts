import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { DataConverter } from '@temporalio/common'
import {
  type ActivityInterceptorsFactory,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker'
import { createBookkeeping, createExecution, createLocal } from '../../activities/index.ts'
import { createSinks } from '../../activities/sinks.ts'
import { bookkeepingQueue, operationQueue } from '../../workflows/operation/messages.ts'
import { dataConverterOf, FAILURES, loadPayloadCodec } from '../shared/codec/payload.ts'
import { linksOfProcess, temporalOptions } from '../shared/links.ts'
import { onRenewal } from '../shared/tls/pairs.ts'
import { bundleOnce } from './bundle.ts'
import type { WorkerConfig } from './config.ts'
import type { WorkerDeps } from './deps.ts'
import { createEngineMetrics } from './engine.metrics.ts'
import { createSpans } from './spans.ts'

const workflows = (file: string) => fileURLToPath(new URL(`../../workflows/${file}`, import.meta.url))
const RETRY_MS = 1000
/** How often the API key is read again, and new certificates are taken. */
const RENEW_MS = 10_000
const NAMESPACE_MS = 10_000
const POLLERS = { type: 'autoscaling', minimum: 2, initial: 5, maximum: 20 } as const

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

const spans = () => ({ inbound: createSpans() })
const quiet = new DefaultLogger('WARN')

/** Returns the deployment of one environment and the build of this process; `undefined` if workers have no versions. */
export const deploymentOf = ({
  WORKER__TEMPORAL__VERSIONING: versioned,
  WORKER__TEMPORAL__BUILD_ID: buildId = '',
  WORKER__TEMPORAL__QUEUE_PREFIX: prefix,
}: WorkerConfig) =>
  versioned
    ? ({
        workerDeploymentOptions: {
          version: { deploymentName: `${prefix}signalbox`, buildId },
          useWorkerVersioning: true,
          defaultVersioningBehavior: 'PINNED',
        },
      } as const)
    : {}

const connect = async (
  deps: WorkerDeps,
  roles: string[],
  workflowBundle: WorkerOptions['workflowBundle'],
  dataConverter: DataConverter | undefined,
) => {
  const { config } = deps
  const options = () => temporalOptions(config.WORKER__TEMPORAL__ADDRESS)
  const open = () => {
    const { apiKey, ...where } = options()
    return NativeConnection.connect({
      ...where,
      ...(apiKey && { apiKey: apiKey() }),
      grpcCompression: { codec: 'none' },
    })
  }
  let connection = await open()
  let outdated = false
  const endRenewal = onRenewal(linksOfProcess().tls, () => (outdated = true))
  /** A connection keeps the certificate that it was made with. What runs continues with the next one. */
  const renew = async () => {
    const key = options().apiKey?.()
    if (!outdated) return key === undefined ? undefined : connection.setApiKey(key)
    const [next, before] = [await open(), connection]
    if (ended) return next.close()
    connection = next
    outdated = false
    for (const worker of workers) worker.connection = next
    await before.close()
  }
  let ended = false
  const workers: Worker[] = []
  let runs: Promise<void>[] = []
  const end = async () => {
    ended = true
    endRenewal()
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
    await Promise.allSettled(runs)
    await connection.close().catch(() => {})
  }
  const namespace = config.WORKER__TEMPORAL__NAMESPACE
  const prefix = config.WORKER__TEMPORAL__QUEUE_PREFIX
  const common = {
    connection,
    namespace,
    ...deploymentOf(config),
    ...(dataConverter && { dataConverter }),
    interceptors: { activity: [spans] as ActivityInterceptorsFactory[] },
    shutdownGraceTime: '20s',
    // A program that is asked to end has 10 s before it is killed.
    shutdownForceTime: '35s',
  } as const
  const activitySlots = {
    maxConcurrentActivityTaskExecutions: config.WORKER__ACTIVITY__CONCURRENCY,
    activityTaskPollerBehavior: POLLERS,
  }
  try {
    // A worker that cannot be made leaves a thread with the whole bundle behind, so what would refuse it is asked first.
    const { workflowService } = connection
    await connection.withDeadline(Date.now() + NAMESPACE_MS, () => workflowService.describeNamespace({ namespace }))
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: operationQueue(prefix),
        ...(workflowBundle && {
          workflowBundle,
          sinks: createSinks(deps.activities),
          maxCachedWorkflows: config.WORKER__WORKFLOW__CACHED,
          maxConcurrentWorkflowTaskExecutions: config.WORKER__WORKFLOW__CONCURRENCY,
          workflowThreadPoolSize: 1,
          workflowTaskPollerBehavior: POLLERS,
        }),
        activities: {
          ...(workflowBundle && createLocal(deps.activities)),
          ...(roles.includes('execution') && createExecution(deps.activities)),
        },
        // Without the role `execution` it only reads graphs for its own workflows.
        enableNonLocalActivities: roles.includes('execution'),
        ...activitySlots,
      }),
    )
    if (workflowBundle)
      workers.push(
        await Worker.create({
          ...common,
          taskQueue: bookkeepingQueue(prefix),
          activities: createBookkeeping(deps.activities),
          ...activitySlots,
        }),
      )
    runs = workers.map((worker) => worker.run())
    return { workers, runs, renew, end }
  } catch (error) {
    // Only a worker that ran gives its thread and connection back.
    runs = workers.map((worker) => worker.run())
    await end()
    throw error
  }
}
