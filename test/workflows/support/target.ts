import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Effect = { path: string; key: string; fence: number; body: unknown; authorization: string | undefined }

/**
 * A real HTTP server that nodes act on. It honors key and fence: an effect counts once per key, and a call with a
 * smaller fence than one already seen is refused. `effects` is the independent witness.
 */
export const startTarget = async () => {
  const effects: Effect[] = []
  const calls: Effect[] = []
  const fences = new Map<string, number>()
  const answers = new Map<
    string,
    (call: number, effect: Effect) => { status: number; body?: unknown; hang?: boolean }
  >()
  const counts = new Map<string, number>()
  const server = createServer(async (req, res) => {
    const effect = await readEffect(req)
    calls.push(effect)
    const count = (counts.get(effect.path) ?? 0) + 1
    counts.set(effect.path, count)
    const seen = fences.get(effect.key) ?? 0
    const stale = effect.key !== '' && effect.fence < seen
    const {
      status,
      body = {},
      hang,
    } = stale ? { status: 409 } : (answers.get(effect.path)?.(count, effect) ?? { status: 200 })
    if (effect.key !== '' && status < 400 && !stale) {
      if (!effects.some((other) => other.key === effect.key)) effects.push(effect)
      fences.set(effect.key, effect.fence)
    }
    if (hang) return
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effects,
    calls,
    paths: () => effects.map(({ path }) => path),
    /** The answer of a path; the call's number counts from 1. */
    answer: (
      path: string,
      answer: (call: number, effect: Effect) => { status: number; body?: unknown; hang?: boolean },
    ) => answers.set(path, answer),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
export type Target = Awaited<ReturnType<typeof startTarget>>

const readEffect = async (req: IncomingMessage): Promise<Effect> => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return {
    path: req.url ?? '',
    key: String(req.headers['idempotency-key'] ?? ''),
    fence: Number(req.headers['x-fencing-token'] ?? 0),
    body: text === '' ? null : JSON.parse(text),
    authorization: req.headers.authorization,
  }
}
