import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

it('reads bytes for as long as a large file needs on a slow line', async () => {
  vi.useFakeTimers()
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    const limit = new AbortController()
    setTimeout(() => limit.abort(), ms)
    return limit.signal
  })
  const nowhere = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined }
  vi.stubGlobal('sessionStorage', nowhere)
  vi.stubGlobal('localStorage', nowhere)
  const Whole = Request
  vi.stubGlobal('Request', function below(path: string) {
    return new Whole(new URL(path, 'http://signalbox.example'))
  })
  vi.stubGlobal('fetch', async (_request: Request, { signal }: { signal: AbortSignal }) => {
    const slow = new ReadableStream<Uint8Array>({
      start: (line) => {
        signal.addEventListener('abort', () => line.error(signal.reason))
        setTimeout(() => !signal.aborted && line.close(), 300_000)
      },
    })
    return new Response(slow)
  })
  const { fetchBytes } = await import('../../apps/console/api/download.ts')
  const answer = fetchBytes('/v1/operations/one/artifacts/two/content')
  await vi.advanceTimersByTimeAsync(300_000)
  expect(await answer).toHaveProperty('blob')
})
