import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

/** Reads a file that brings a byte each `pause_ms` and is whole after five minutes. */
const download = async (pause_ms: number) => {
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
  vi.stubGlobal('Request', function below(path: string, options: RequestInit) {
    return new Whole(new URL(path, 'http://signalbox.example'), options)
  })
  vi.stubGlobal('fetch', async (_request: Request, { signal }: { signal: AbortSignal }) => {
    const slow = new ReadableStream<Uint8Array>({
      start: (line) => {
        const bytes = setInterval(() => line.enqueue(new Uint8Array(1)), pause_ms)
        const whole = setTimeout(() => {
          clearInterval(bytes)
          line.close()
        }, 300_000)
        signal.addEventListener('abort', () => {
          clearInterval(bytes)
          clearTimeout(whole)
          line.error(signal.reason)
        })
      },
    })
    return new Response(slow)
  })
  const { fetchBytes } = await import('../../apps/console/api/download.ts')
  const answer = fetchBytes('/v1/operations/one/artifacts/two/content')
  await vi.advanceTimersByTimeAsync(300_000)
  return answer
}

it('reads bytes for as long as a large file needs on a slow line', async () => {
  const { blob } = (await download(30_000)) as { blob: Blob }
  expect(blob.size).toBeGreaterThanOrEqual(9)
})

it('gives up once a line has brought no byte for a minute', async () => {
  expect(await download(61_000)).toMatchObject({
    problem: { code: 'no_answer', detail: expect.stringMatching(/silent/) },
  })
})
