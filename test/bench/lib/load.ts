import type { Dispatcher } from 'undici'

/** What one arm of a benchmark did in its time. */
export type Arm = { count: number; failed: number; seconds: number; per_s: number; times_ms: number[] }

/**
 * A closed loop of `workers` callers for `ms` milliseconds: each sends its next call when the last one is answered.
 * `call` returns whether it succeeded.
 */
export const closedLoop = async (
  workers: number,
  ms: number,
  call: (worker: number) => Promise<boolean>,
): Promise<Arm> => {
  const started = performance.now()
  const end = started + ms
  const times_ms: number[] = []
  let failed = 0
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (let begun = performance.now(); begun < end; begun = performance.now()) {
        const ok = await call(worker)
        times_ms.push(performance.now() - begun)
        if (!ok) failed += 1
      }
    }),
  )
  const seconds = (performance.now() - started) / 1000
  return { count: times_ms.length, failed, seconds, per_s: times_ms.length / seconds, times_ms }
}

export type Reply = { status: number; text: string; retry_after: string | undefined }

/** One HTTP request with as little work on this side as possible: the generator shares the machine with its subject. */
export const send = (
  pool: Dispatcher,
  { method, path, headers, body }: { method: string; path: string; headers: Record<string, string>; body?: string },
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    let status = 0
    let retry_after: string | undefined
    const chunks: Buffer[] = []
    pool.dispatch(
      { method: method as 'GET', path, headers, body: body ?? null },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, code, headers) => {
          status = code
          retry_after = headers['retry-after']?.toString()
        },
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => resolve({ status, text: Buffer.concat(chunks).toString(), retry_after }),
        onResponseError: (_controller, error) => reject(error),
      },
    )
  })
