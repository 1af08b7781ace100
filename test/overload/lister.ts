import { parentPort, workerData } from 'node:worker_threads'
import { Pool } from 'undici'
import { closedLoop, send } from '../bench/lib/load.ts'

/** The crowd, in a separate thread, so that its load on its own event loop is not taken for the platform's. */
export type Listing = { url: string; connections: number; seconds: number; path: string; token: string }
/** Status 0: a broken connection. `told`: the answer says when to retry. */
export type Listed = { status: number; ms: number; told: boolean }[]

const { url, connections, seconds, path, token } = workerData as Listing
const pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 30_000 })
const answers: Listed = []
await closedLoop(connections, seconds * 1000, async () => {
  const begun = performance.now()
  const headers = { authorization: `Bearer ${token}` }
  const { status, retry_after } = await send(pool, { method: 'GET', path, headers }).catch(() => ({
    status: 0,
    retry_after: undefined,
  }))
  answers.push({ status, ms: performance.now() - begun, told: retry_after !== undefined })
  return true
})
await pool.close()
parentPort?.postMessage(answers)
