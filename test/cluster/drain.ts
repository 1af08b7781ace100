import { Connection } from '@temporalio/client'
import { loadLinks, temporalOptions } from '../../apps/shared/links.ts'
import { until } from '../support/until.ts'
import type { Cluster } from './site.ts'

/** Operations must end before their build is drained, which takes minutes on a busy machine. */
const PATIENT = { timeout_ms: 600_000 }
const DRAINED = 2

/** Workers of another build take the place of those that run, as in the guide "Upgrade". */
export const drains = (cluster: Cluster) => ({
  name: 'drain a build of the worker',
  act: async () => {
    if (cluster.build.worker === undefined) await replaceWorkers(cluster, 'a')
    const { worker: last = '' } = cluster.build
    await withBuilds(cluster, (builds) =>
      until(() => builds.runs(last), { ...PATIENT, what: `operations on build ${last}` }),
    )
    await replaceWorkers(cluster, 'b')
  },
})

/**
 * The new workers start beside the old ones and become current. The old ones stop once the engine calls their build
 * drained: an operation stays on the build that began it, which an older one cannot replay. Workers without a version
 * give way at once.
 */
export const replaceWorkers = (cluster: Cluster, build: string): Promise<void> =>
  withBuilds(cluster, async (builds) => {
    const last = cluster.build.worker
    const settings = { WORKER__TEMPORAL__VERSIONING: 'true', WORKER__TEMPORAL__BUILD_ID: build }
    const fresh = [
      await cluster.beside(`worker-${build}-1`, settings),
      await cluster.beside(`worker-${build}-2`, settings),
    ]
    for (const one of fresh) await one.start()
    await until(() => builds.makeCurrent(build), { ...PATIENT, what: `build ${build} as the current one` })
    if (last) await until(() => builds.isDrained(last), { ...PATIENT, what: `build ${last} to be drained` })
    for (const one of cluster.apps.get('worker') ?? []) await one.stop()
    cluster.apps.set('worker', fresh)
    cluster.build.worker = build
    // Whoever was stopped too early has left an operation that no worker can continue.
    if (last && (await builds.runs(last))) throw new Error(`operations are left on build ${last}`)
  })

const withBuilds = async <T>({ context }: Cluster, work: (builds: Builds) => Promise<T>): Promise<T> => {
  const { servers, overrides, prefix } = context
  const { address, namespace } = servers.temporal
  const connection = await Connection.connect(temporalOptions(address, loadLinks(overrides)))
  try {
    return await work(buildsOf(connection, namespace, `${prefix.queue}signalbox`))
  } finally {
    await connection.close()
  }
}

const buildsOf = ({ workflowService }: Connection, namespace: string, deploymentName: string) => ({
  /** Whether operations run on a build. */
  runs: async (buildId: string): Promise<boolean> => {
    const query = `TemporalWorkerDeploymentVersion = '${deploymentName}:${buildId}' and ExecutionStatus = 'Running'`
    const { count } = await workflowService.countWorkflowExecutions({ namespace, query })
    return Number(count) > 0
  },
  /** False until its workers have polled. */
  makeCurrent: (buildId: string): Promise<boolean> =>
    workflowService.setWorkerDeploymentCurrentVersion({ namespace, deploymentName, buildId, identity: 'test' }).then(
      () => true,
      () => false,
    ),
  isDrained: async (buildId: string): Promise<boolean> => {
    const deploymentVersion = { deploymentName, buildId }
    const told = await workflowService.describeWorkerDeploymentVersion({ namespace, deploymentVersion })
    return told.workerDeploymentVersionInfo?.drainageInfo?.status === DRAINED
  },
})
type Builds = ReturnType<typeof buildsOf>
