import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'

export type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

/** A real HTTP server in place of catalog and operations: it records the requests that reach it and answers as told. */
export const startUpstream = async () => {
  const seen: Seen[] = []
  let answer = (_req: IncomingMessage, res: ServerResponse): void => {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
  }
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    seen.push({
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      body: Buffer.concat(chunks).toString(),
    })
    answer(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    last: () => seen.at(-1),
    answerWith: (next: typeof answer) => {
      answer = next
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Sends bytes unchanged and returns everything that comes back until the connection ends or `until` is seen. */
export const raw = async (url: string, bytes: string, until = /\r\n\r\n/): Promise<string> => {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  let text = ''
  socket.write(bytes)
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (until.test(text)) resolve()
    })
    socket.on('close', () => resolve())
    socket.on('error', () => resolve())
  })
  await done
  socket.destroy()
  return text
}
