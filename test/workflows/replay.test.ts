import { readdirSync, readFileSync } from 'node:fs'
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker'
import { expect, it } from 'vitest'

const FOLDER = new URL('./histories/', import.meta.url)
const WORKFLOWS = new URL('../../workflows/index.ts', import.meta.url).pathname

it('carries on every recorded history: running operations survive a deploy of this code', async () => {
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  })
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
  expect(files.length).toBeGreaterThan(0)
  const histories = files.map((name) => ({
    workflowId: (JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as { workflow_id: string }).workflow_id,
    history: (JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as { history: unknown }).history,
  }))
  const failures: string[] = []
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowsPath: WORKFLOWS }, histories))
    if (error) failures.push(`${workflowId}: ${error.message}`)
  expect(failures).toEqual([])
})
