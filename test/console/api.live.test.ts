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

const HEAD = { since: 0, whole_at: 0 }
const SESSION = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined }

/** A tab that follows another: what it hears, and the modules of it alone. */
const follower = async () => {
  vi.resetModules()
  const listeners: ((event: { data: object }) => void)[] = []
  const channel = {
    addEventListener: (_of: string, listener: (event: { data: object }) => void) => void listeners.push(listener),
    postMessage: () => undefined,
  }
  vi.stubGlobal(
    'BroadcastChannel',
    class {
      constructor() {
        Object.assign(this, channel)
      }
    },
  )
  const deaf = { addEventListener: () => undefined }
  vi.stubGlobal('window', deaf)
  vi.stubGlobal('document', { ...deaf, visibilityState: 'visible' })
  vi.stubGlobal('localStorage', SESSION)
  vi.stubGlobal('navigator', { onLine: true, locks: { request: () => new Promise(() => undefined) } })
  const live = await import('../../apps/console/api/live.ts')
  live.startLive()
  return { live, hear: (data: object) => listeners.forEach((listener) => void listener({ data })) }
}

it('knows of when its data is once no news comes any longer', async () => {
  const { live, hear } = await follower()
  vi.useFakeTimers({ now: 1_000_000 })
  try {
    hear({ kind: 'connection', connection: { ...HEAD, mode: 'live', whole_at: 1_000_000 }, served: [] })
    vi.advanceTimersByTime(100_000)
    expect(live.connectionNow()).toMatchObject({ mode: 'polling', whole_at: 1_000_000 })
  } finally {
    vi.useRealTimers()
  }
})

it('applies what it hears even if it is hidden before the paint that it has asked for', async () => {
  const { hear } = await follower()
  vi.stubGlobal('requestAnimationFrame', () => 0)
  const { QueryClient } = await import('@tanstack/react-query')
  const { applyLive } = await import('../../apps/console/api/apply.ts')
  const client = new QueryClient()
  client.setQueryData(['me'], { counts: { inbox: 0 } })
  applyLive(client)
  hear({ kind: 'frame', frame: { event: 'inbox', data: { counts: { inbox: 1 } } }, cursor: null })
  await until(() => (client.getQueryData(['me']) as { counts: { inbox: number } }).counts.inbox === 1, {
    what: 'the count of the inbox',
  })
  client.clear()
})
