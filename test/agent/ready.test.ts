import { expect, it } from 'vitest'
import { type Checked, movedFrom } from '../../apps/cli/agent/kubernetes/check.ts'
import { readinessOf } from '../../apps/cli/agent/kubernetes/ready.ts'
import { type Run, toldOf } from '../../apps/cli/agent/kubernetes/run.ts'
import { Ended, failed } from '../../apps/cli/agent/tools/types.ts'

it('a pod that has ended is ready or failed, and does not wait for its time to run out', () => {
  const pod = (status: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'one' }, status })
  const conditions = [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }]
  expect(readinessOf(pod({ phase: 'Succeeded', conditions }))).toMatchObject({ ready: true })
  expect(readinessOf(pod({ phase: 'Running', conditions }))).toMatchObject({ ready: false })
  expect(readinessOf(pod({ phase: 'Failed', reason: 'Evicted', message: 'low on memory', conditions }))).toEqual({
    ...{ ready: false, failed: true, words: 'Failed Evicted: low on memory' },
  })
})

it('what no controller has seen yet, or is at work on, is not ready', () => {
  const object = (apiVersion: string, kind: string, more: object) => ({
    ...{ apiVersion, kind, metadata: { name: 'one' }, ...more },
  })
  const pod = (...conditions: object[]) =>
    readinessOf(object('v1', 'Pod', { status: { phase: 'Pending', ...(conditions.length > 0 && { conditions }) } }))
  expect(pod()).toEqual({ ready: false, words: 'Pending' })
  expect(
    pod({ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }),
  ).toEqual({ ready: false, words: 'Unschedulable: 0/3 nodes are available' })
  expect(pod({ type: 'PodScheduled', status: 'True' })).toEqual({ ready: false, words: 'Pending' })
  expect(pod({ type: 'PodScheduled', status: 'True' }, { type: 'Ready', status: 'True' })).toMatchObject({
    ready: true,
  })
  const set = (status: object) => readinessOf(object('apps/v1', 'ReplicaSet', { spec: { replicas: 3 }, status }))
  expect(set({ replicas: 3, readyReplicas: 1 })).toEqual({ ready: false, words: '1 of 3 replicas are ready' })
  expect(set({ replicas: 3, readyReplicas: 3 })).toMatchObject({ ready: true })
  const busy = [{ type: 'Reconciling', status: 'True', reason: 'Progressing', message: 'pulling' }]
  const foo = (conditions: object[]) => readinessOf(object('example.com/v1', 'Foo', { status: { conditions } }))
  expect(foo([...busy, { type: 'Ready', status: 'True' }])).toEqual({ ready: false, words: 'Progressing: pulling' })
  expect(foo([{ type: 'Reconciling', status: 'False' }])).toMatchObject({ ready: true })
})

it('once an object was written, no refusal and no error hides it', async () => {
  const done = ['ConfigMap web/a created']
  const saved = { objects: [1, 2], prune: [] }
  const run = { begun: true, done, saved, job: { executed: {} }, mask: (text: string) => text } as never as Run
  const endOf = async (error: Error, begun = true) => {
    const end: unknown = await toldOf({ ...run, begun }, () => Promise.reject(error)).catch((end: unknown) => end)
    return end instanceof Ended ? end.verdict : end
  }
  const words = /^Objects done: 1 of 2: ConfigMap web\/a created\. /
  expect(await endOf(new Ended(failed('refused', 'HTTP 403.')))).toMatchObject({
    ...{ status: 'failed', class: 'partial', message: expect.stringMatching(words) },
  })
  expect(await endOf(new Error('broken'))).toMatchObject({
    ...{ status: 'unknown', class: 'agent_error', message: expect.stringMatching(words) },
  })
  const refused = new Ended(failed('refused', 'HTTP 403.'))
  expect(await endOf(refused, false)).toBe(refused.verdict)
})

it('noise excuses no field that the manifest sets, and an object that came unseen is not overwritten', () => {
  const object = (data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data })
  const field = { path: '/data/a', before: '1', after: '2' }
  const previewed = { action: 'update' as const, manager: 'a', fields: [field], taken: [], object: object({ a: '2' }) }
  const now: Checked = {
    ...{ action: 'update', fields: [{ ...field, before: 'theirs' }], taken: [] },
    ...{ live: object({ a: 'theirs' }), after: object({ a: '2' }) },
  }
  expect(movedFrom(previewed, now, ['/data/*'])).toBe('/data/a changed')
  expect(movedFrom({ ...previewed, object: object({}) }, now, ['/data/*'])).toBeUndefined()
  const unseen = { ...previewed, action: 'unseen' as const }
  expect(movedFrom(unseen, now, [])).toMatch(/exists now/)
  expect(movedFrom(unseen, { ...now, action: 'none', fields: [] }, [])).toBeUndefined()
})
