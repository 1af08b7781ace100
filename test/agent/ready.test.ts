import { expect, it } from 'vitest'
import { readinessOf } from '../../apps/cli/agent/kubernetes/ready.ts'

it('a pod that has ended is ready or failed, and does not wait for its time to run out', () => {
  const pod = (status: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' }, status })
  const conditions = [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }]
  expect(readinessOf(pod({ phase: 'Succeeded', conditions }))).toMatchObject({ ready: true })
  expect(readinessOf(pod({ phase: 'Running', conditions }))).toMatchObject({ ready: false })
  expect(readinessOf(pod({ phase: 'Failed', reason: 'Evicted', message: 'low on memory', conditions }))).toEqual({
    ...{ ready: false, failed: true, words: 'Failed Evicted: low on memory' },
  })
})
