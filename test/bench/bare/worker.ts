import { fileURLToPath } from 'node:url'
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker'

/**
 * The baseline's worker: a separate process with the same options as ours. Arguments: address, namespace, task queue.
 */
const [address = '127.0.0.1:7233', namespace = 'default', taskQueue = 'bare'] = process.argv.slice(2)

Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] })
const connection = await NativeConnection.connect({ address, grpcCompression: { codec: 'none' } })
const worker = await Worker.create({
  connection,
  namespace,
  taskQueue,
  workflowsPath: fileURLToPath(new URL('./workflow.ts', import.meta.url)),
  activities: { nothing: async () => {} },
  workflowThreadPoolSize: 1,
  maxCachedWorkflows: 300,
  maxConcurrentWorkflowTaskExecutions: 30,
  maxConcurrentActivityTaskExecutions: 50,
  workflowTaskPollerBehavior: { type: 'autoscaling', minimum: 2, initial: 5, maximum: 20 },
  activityTaskPollerBehavior: { type: 'autoscaling', minimum: 2, initial: 5, maximum: 20 },
})
process.on('SIGTERM', () => worker.shutdown())
process.send?.('ready')
await worker.run()
await connection.close()
