import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Keeps one state and its lock, as OpenTofu's http backend expects. A lock stays until it is removed. */
export const startStateServer = async () => {
  let state: string | undefined
  let lock: string | undefined
  let failing = false
  let away = false
  let refusing: (() => Promise<void>) | undefined
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    if (req.method === 'GET' && away) return res.writeHead(500).end()
    if (req.method === 'GET') return res.writeHead(state === undefined ? 404 : 200).end(state)
    if (req.method === 'LOCK' && lock !== undefined) return res.writeHead(423).end(lock)
    if (req.method === 'LOCK') lock = body
    if (req.method === 'UNLOCK') lock = undefined
    if (req.method === 'POST' && refusing) {
      await refusing()
      return res.writeHead(403).end()
    }
    if (req.method === 'POST') state = body
    if (req.method === 'POST' && failing) away = true
    res.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/state`,
    state: () => state,
    lock: () => (lock === undefined ? undefined : (JSON.parse(lock) as { ID: string })),
    /** Once the next state is written, no state can be read. */
    loseAfterWrite: () => {
      failing = true
    },
    /** No state is written from now on; each try is told. */
    refuseWrites: (told?: () => Promise<void>) => {
      refusing = told
    },
    stop: () => void server.close(),
  }
}
