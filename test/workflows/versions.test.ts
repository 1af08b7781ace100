import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateTemporal } from '../../apps/platform/servers/temporal.ts'
import { loadWorkerConfig } from '../../apps/worker/config.ts'
import { deploymentOf } from '../../apps/worker/connect.ts'
import { serverUrl } from '../support/database.ts'
import { blocksOf, typeBlock } from '../support/guides.ts'
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
let folder: string
const prefix = `v${process.pid}-`
/** The engine starts its workers with the options that are here then. */
const worker = versioned('v1', prefix)
beforeAll(async () => {
  engine = await createEngine({ worker })
  folder = dirname(await locateTemporal(silentScreen))
})
/** A block of a guide, at this engine. */
const typed = (block: string) =>
  typeBlock(
    block.replace('--namespace signalbox', '--namespace default').replace('name signalbox', `name ${prefix}signalbox`),
    { PATH: `${folder}:${process.env.PATH}`, HOME: tmpdir(), TEMPORAL_ADDRESS: serverUrl('TEMPORAL_ADDRESS') },
  )
/** The engine learns of a build when its worker asks for work. */
const makesCurrent = (block = '') => until(() => typed(block).then(Boolean, () => false), { what: 'a current build' })
afterAll(() => engine.close())

it('keeps an operation on the build that started it, even when it continues as new', async () => {
  const deploymentName = `${prefix}signalbox`
  await makesCurrent(blocksOf('roll-back.md', 'engine')[0])
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
  expect(deploymentVersion).toMatchObject({ deploymentName, buildId: 'v1' })
})

it('lets a person make the new build current, and see when the old one is drained, as the guides say', async () => {
  const [upgrade = '', look = ''] = blocksOf('upgrade.md', 'engine')
  await engine.stopWorkers()
  Object.assign(worker, versioned('v2', prefix))
  await engine.startWorkers()
  await makesCurrent(upgrade)
  await until(async () => /DrainageStatus\s+drain(ing|ed)/i.test(await typed(look)), { what: 'a build that drains' })
})

it('does not start without the name of its build', () => {
  expect(() => versioned('', prefix)).toThrow(/BUILD_ID/)
})
