import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { objectIn } from '../../shared/data/pointer.ts'
import { INSTANCE_HEADER } from '../../shared/http/health.ts'

const TRY_MS = 2000

/** Resolves if something listens on a loopback port. */
export const listens = (port: number, host = '127.0.0.1'): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host })
    socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`no server answers on port ${port}`)))
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })

/** A line protocol's first exchange: sends `ask` and reads until `expect`, which no other server's answer matches. */
export const answers = (port: number, ask: string, expect: RegExp, ca_file?: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const at = { port, host: '127.0.0.1' }
    const begin = () => void socket.write(ask)
    const socket = ca_file ? connectTls({ ...at, ca: readFileSync(ca_file) }, begin) : connect(at, begin)
    let text = ''
    socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`unexpected answer on port ${port}: ${lineOf(text)}`)))
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (!expect.test(text)) return
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`port ${port} closed: ${lineOf(text)}`)))
  })

const lineOf = (text: string): string => text.trim().split('\n')[0]?.slice(0, 200) || 'no answer'

/**
 * Resolves on a health answer of 200, from this process if one is named; otherwise throws the problem. Returns the
 * checks that fail although the app serves.
 */
export const healthy = async (url: string, pid?: number): Promise<string> => {
  const reply = await fetch(url, { signal: AbortSignal.timeout(TRY_MS) })
  const text = await reply.text()
  const instance = reply.headers.get(INSTANCE_HEADER)
  if (pid !== undefined && !instance?.endsWith(`-${pid}`))
    throw new Error(`${url} is served by ${instance ?? 'another process'}`)
  const problems = problemsOf(text)
  if (reply.ok) return problems
  throw new Error(`${url} answered ${reply.status}${problems && `, ${problems}`}`)
}

const problemsOf = (text: string): string => {
  const checks = (objectIn(text)?.checks ?? {}) as Record<string, { ok: boolean; detail?: string }>
  const failed = Object.entries(checks).filter(([, check]) => !check.ok)
  return failed.map(([name, check]) => `${name}: ${check.detail ?? 'not ok'}`).join(', ')
}

/** Checks that a Temporal frontend knows the namespace, by a hand-written gRPC call: Temporal's client loads slowly. */
export const knowsNamespace = (address: string, namespace: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const session = http2.connect(`http://${address}`)
    const done = (error?: Error) => {
      session.destroy()
      if (error) reject(error)
      else resolve()
    }
    session.setTimeout(TRY_MS, () => done(new Error(`no answer from ${address}`)))
    session.once('error', done)
    session.once('close', () => done(new Error(`${address} closed the connection`)))
    const request = session.request({
      ':method': 'POST',
      ':path': '/temporal.api.workflowservice.v1.WorkflowService/DescribeNamespace',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const verdict = (headers: http2.IncomingHttpHeaders) => {
      const status = headers['grpc-status']
      if (status === undefined) return
      done(status === '0' ? undefined : new Error(String(headers['grpc-message'] ?? `gRPC status ${status}`)))
    }
    request.once('response', verdict)
    request.once('trailers', verdict)
    request.once('error', done)
    request.once('close', () => done(new Error(`${address} gave no answer`)))
    request.resume()
    const name = Buffer.from(namespace)
    const message = Buffer.concat([Buffer.from([0x0a, name.length]), name])
    const frame = Buffer.alloc(5)
    frame.writeUInt32BE(message.length, 1)
    request.end(Buffer.concat([frame, message]))
  })
