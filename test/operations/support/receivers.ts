import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

export type Mail = { to: string[]; raw: string; body: string }

/** A real mail server that keeps all mail; `answer` may refuse a recipient with a status. */
export const startMailServer = async () => {
  const mails: Mail[] = []
  const state = { refuse: undefined as number | undefined, seen: 0 }
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo: (_address, _session, done) => {
      state.seen += 1
      if (state.refuse === undefined) return done()
      done(Object.assign(new Error('not now'), { responseCode: state.refuse }))
    },
    onData: (stream, session, done) => {
      void text(stream).then((raw) => {
        const [head = '', ...body] = raw.split('\r\n\r\n')
        const quoted = /quoted-printable/i.test(head)
        const plain = body.join('\n\n').replace(/\r\n/g, '\n')
        const decoded = quoted
          ? plain
              .replace(/=\n/g, '')
              .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
          : plain
        mails.push({ to: session.envelope.rcptTo.map(({ address }) => address), raw, body: decoded })
        done()
      }, done)
    },
  })
  // A sender that is killed cuts its connection in the middle of a message.
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    state,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

export type Call = { path: string; headers: IncomingHttpHeaders; body: string }

/** A real receiver of webhooks that answers as told. */
export const startHooks = async () => {
  const calls: Call[] = []
  const state = { status: 200, location: undefined as string | undefined, retry_after: undefined as string | undefined }
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      calls.push({ path: `${req.method} ${req.url}`, headers: req.headers, body })
      if (req.url?.startsWith('/hang')) return
      if (state.location !== undefined) res.setHeader('location', state.location)
      if (state.retry_after !== undefined) res.setHeader('retry-after', state.retry_after)
      res.writeHead(state.status).end('noted')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    calls,
    state,
    cut: () => server.closeAllConnections(),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
