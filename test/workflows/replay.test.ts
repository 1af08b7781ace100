import { readdirSync, readFileSync } from 'node:fs'
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker'
import { expect, it } from 'vitest'
import { bundleOnce } from '../../apps/worker/bundle.ts'

const SOURCES = new URL('../../workflows/operation/', import.meta.url)
const FOLDER = new URL('./histories/', import.meta.url)
const WORKFLOWS = new URL('../../workflows/index.ts', import.meta.url).pathname

type Recorded = {
  workflow_id: string
  history: {
    events: {
      markerRecordedEventAttributes?: { markerName: string; details: Record<string, { payloads: { data: string }[] }> }
    }[]
  }
}
const recorded = (): Recorded[] =>
  readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')))

/** The workflow's change markers with which a history was recorded. */
const markersOf = ({ history }: Recorded): string[] =>
  history.events.flatMap(({ markerRecordedEventAttributes: marker }) =>
    marker?.markerName === 'core_patch'
      ? Object.values(marker.details).flatMap(({ payloads }) =>
          payloads.map(({ data }) => JSON.parse(Buffer.from(data, 'base64').toString()).id as string),
        )
      : [],
  )

it('has a history with each change that the workflow distinguishes, and older ones without the newest', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const source = files.map((name) => readFileSync(new URL(name, SOURCES), 'utf8')).join('\n')
  const known = [...source.matchAll(/patched\('([a-z-]+)'\)/g)].map(([, name]) => name)
  expect(known).toContain('undo-first')
  const histories = recorded().map(markersOf)
  expect([...new Set(histories.flat())].sort()).toEqual([...new Set(known)].sort())
  expect(histories.some((markers) => markers.length === 0)).toBe(true)
})

it('continues every recorded history: running operations survive a deploy of this code', async () => {
  const logger = new DefaultLogger('ERROR')
  Runtime.install({ logger, telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } } })
  const histories = recorded().map(({ workflow_id, history }) => ({ workflowId: workflow_id, history }))
  expect(histories.length).toBeGreaterThan(0)
  const failures: string[] = []
  const workflowBundle = await bundleOnce({ workflowsPath: WORKFLOWS, logger })
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories))
    if (error) failures.push(`${workflowId}: ${error.message}`)
  expect(failures).toEqual([])
}, 180_000)
