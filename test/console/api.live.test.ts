import { afterEach, expect, it, vi } from 'vitest'
import { until } from '../support/until.ts'

afterEach(() => void vi.unstubAllGlobals())

it('follows a leader of an older build, which does not say which topics it asked for', async () => {
  const deaf = { addEventListener: () => undefined }
  vi.stubGlobal('window', deaf)
  vi.stubGlobal('document', { ...deaf, visibilityState: 'visible' })
  vi.stubGlobal('navigator', { onLine: true, locks: { request: () => new Promise(() => undefined) } })
  const { connectionNow, holdTopic, onServed, startLive } = await import('../../apps/console/api/live.ts')
  const served = vi.fn()
  onServed(served)
  holdTopic('inbox')
  startLive()
  const leader = new BroadcastChannel('signalbox-live')
  const connection = { mode: 'live', since: Date.now(), whole_at: Date.now() }
  leader.postMessage({ kind: 'connection', connection, served: ['inbox'] })
  await until(() => connectionNow().mode === 'live', { what: 'the tab to be live' })
  expect(served.mock.calls).toEqual([[['inbox']]])
  leader.close()
})
