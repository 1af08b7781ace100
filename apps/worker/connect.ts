import type { DataConverter } from '@temporalio/common'
import { type ActivityInterceptorsFactory, NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker'
import { createBookkeeping, createExecution, createLocal } from '../../activities/index.ts'
import { createSinks } from '../../activities/sinks.ts'
import { bookkeepingQueue, operationQueue } from '../../workflows/operation/messages.ts'
import { linksOfProcess, temporalOptions } from '../shared/links.ts'
import { onRenewal } from '../shared/tls/pairs.ts'
import type { WorkerConfig } from './config.ts'
import type { WorkerDeps } from './deps.ts'
import { createSpans } from './spans.ts'

const NAMESPACE_MS = 10_000
const POLLERS = { type: 'autoscaling', minimum: 2, initial: 5, maximum: 20 } as const

const spans = () => ({ inbound: createSpans() })

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

export const connect = async (
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
