import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'nats'
import { carryOut, type Job, stopWork, type Work } from '../../support/agent/agent.ts'
import { takeFromStream } from '../../support/agent/stream.ts'

/**
 * The reference agent as a separate program: it reads the stream of SIGNALBOX_NATS_URL, or listens at
 * SIGNALBOX_ENDPOINT. FOREIGN_FAULT makes it break one rule of the protocol.
 */
const {
  SIGNALBOX_POOL: pool = '',
  SIGNALBOX_NATS_URL: nats,
  SIGNALBOX_STREAM: stream = '',
  FOREIGN_FAULT,
} = process.env
const { SIGNALBOX_SUBJECT: subject = '', SIGNALBOX_ENDPOINT: endpoint = '' } = process.env
const has = (fault: string) => FOREIGN_FAULT === fault

/** Work that no agent should do names no file. */
const add = ({ inputs: { file } }: Work) => (typeof file === 'string' ? appendFileSync(file, 'did\n') : undefined)
const jobs: Record<string, Job> = {
  effect: async (work) => {
    if (!has('early')) add(work)
    return {}
  },
  ticks: (work, { signal }) =>
    new Promise((_, reject) => {
      const timer = setInterval(() => add(work), 1000)
      const stop = () => {
        clearInterval(timer)
        reject(new Error('stopped'))
      }
      if (signal.aborted) stop()
      else if (!has('deaf')) signal.addEventListener('abort', stop)
    }),
  loud: async (_, { log }) => {
    log('x'.repeat(100_000))
    for (let i = 0; i < 3000; i++) log(`line ${i}`)
    return {}
  },
}

/** Work in flight; a good agent starts none of it twice. */
const known = new Set<number>()
const open = new Set<Promise<unknown>>()
const take = async (work: Work): Promise<void> => {
  if (known.has(work.fence) && !has('twice')) return
  known.add(work.fence)
  if (has('early') && work.job === 'effect') add(work)
  if (has('twice') && work.job === 'effect') add(work)
  const job = has('any-job') ? (jobs[work.job] ?? jobs.effect) : jobs[work.job]
  const done = carryOut(work, job)
  open.add(done)
  await done.finally(() => open.delete(done))
}

const listen = async (): Promise<() => Promise<unknown>> => {
  if (nats) {
    const nc = await connect({ servers: nats })
    const source = await takeFromStream(nc, { pool, stream, subject }, take)
    return async () => {
      await source.close()
      await Promise.all(open)
      await nc.close()
    }
  }
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    res.writeHead(202).end()
    if (req.method !== 'POST') return
    const work = JSON.parse(Buffer.concat(chunks).toString()) as Work
    if (req.url?.endsWith('/cancel')) stopWork(work)
    else await take(work)
  })
  const url = new URL(endpoint)
  await new Promise<void>((resolve) => server.listen(Number(url.port), url.hostname, resolve))
  return async () => {
    server.close()
    await Promise.all(open)
    server.closeAllConnections()
  }
}

process.on('SIGTERM', async () => {
  if (!has('no-drain')) await (await listening)()
  process.exit(0)
})
const listening = listen()
