import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadWorkerConfig } from '../../apps/worker/config.ts'
import { deploymentOf } from '../../apps/worker/workers.ts'
import { until } from '../support/until.ts'
import { createEngine, type Engine, node } from './support/engine.ts'

const versioned = (build: string, prefix: string) =>
  deploymentOf(
    loadWorkerConfig({
      WORKER__DATABASE__URL: 'postgres://u:p@127.0.0.1:1/x',
      WORKER__NATS__URL: 'nats://127.0.0.1:1',
      WORKER__TEMPORAL__VERSIONING: 'true',
      WORKER__TEMPORAL__BUILD_ID: build,
      WORKER__TEMPORAL__QUEUE_PREFIX: prefix,
    }),
  )

let engine: Engine
const prefix = `v${process.pid}-`
beforeAll(async () => {
  engine = await createEngine({ worker: versioned('build-1', prefix) })
})
afterAll(() => engine.close())

it('keeps an operation on the build that started it, even when it continues as new', async () => {
  const { workflowService } = engine.client
  const deploymentName = `${prefix}signalbox`
  await until(
    () =>
      workflowService
        .setWorkerDeploymentCurrentVersion({
          namespace: 'default',
          deploymentName,
          buildId: 'build-1',
          identity: 'test',
        })
        .then(
          () => true,
          () => false,
        ),
    { timeout_ms: 30_000, what: 'a current build' },
  )
  const nodes = Array.from({ length: 12 }, (_, i) => node(`n${i}`, { depends_on: i === 0 ? [] : [`n${i - 1}`] }))
  const input = await engine.prepare({ nodes, roll_events: 20 })
  const { firstExecutionRunId } = await engine.launch(input)
  expect((await engine.ends(input.operation_id)).status).toBe('succeeded')
  const handle = engine.client.workflow.getHandle(input.operation_id)
  const { runId, raw } = await handle.describe()
  expect(runId).not.toBe(firstExecutionRunId)
  const { behavior, deploymentVersion } = raw.workflowExecutionInfo?.versioningInfo ?? {}
  expect(behavior).toBe(1)
  // A workflow that only waits looks for a newer build once a day.
  const { events } = await handle.fetchHistory()
  const waits = events?.map(({ timerStartedEventAttributes: timer }) => Number(timer?.startToFireTimeout?.seconds))
  expect(waits).toContain(86_400)
  expect(deploymentVersion).toMatchObject({ deploymentName, buildId: 'build-1' })
})

it('does not start without the name of its build', () => {
  expect(() => versioned('', prefix)).toThrow(/BUILD_ID/)
})
