import http2 from 'node:http2'
import { connect } from 'node:net'

const TRY_MS = 2000

/** Something listens on a loopback port. */
export const listens = (port: number, host = '127.0.0.1'): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host })
    socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`nothing answers on port ${port}`)))
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })

/** A line protocol's first exchange: sends `ask` and wants an answer that starts with `expect`. */
export const answers = (port: number, ask: string, expect: RegExp): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(ask))
    let text = ''
    socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`no answer on port ${port}`)))
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (!text.includes('\n')) return
      socket.destroy()
      if (expect.test(text)) resolve()
      else reject(new Error(text.trim().split('\n')[0] ?? 'no answer'))
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`port ${port} closed`)))
  })

/** A health answer of 200; another answer throws what is not right. */
export const healthy = async (url: string): Promise<void> => {
  const reply = await fetch(url, { signal: AbortSignal.timeout(TRY_MS) })
  if (reply.ok) return void (await reply.arrayBuffer())
  const text = await reply.text()
  throw new Error(`${url} answers ${reply.status}${problemsOf(text)}`)
}

const problemsOf = (text: string): string => {
  try {
    const { checks } = JSON.parse(text) as { checks?: Record<string, { ok: boolean; detail?: string }> }
    const failed = Object.entries(checks ?? {}).filter(([, check]) => !check.ok)
    return failed.map(([name, check]) => `, ${name}: ${check.detail ?? 'not ok'}`).join('')
  } catch {
    return ''
  }
}

/** A Temporal frontend that knows the namespace: one gRPC call by hand, since its client takes long to load. */
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
    request.resume()
    const name = Buffer.from(namespace)
    const message = Buffer.concat([Buffer.from([0x0a, name.length]), name])
    const frame = Buffer.alloc(5)
    frame.writeUInt32BE(message.length, 1)
    request.end(Buffer.concat([frame, message]))
  })
