import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

/** Sees the bytes of one connection in each direction. */
export type Watch = (connection: object, direction: 'sent' | 'answered', bytes: Buffer) => void

/** A TCP pass-through that can be cut: then its clients cannot reach the server behind it. */
export const startLink = async (target: string) => {
  let { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let down = false
  let frozen = false
  let delay_ms = 0
  let held: (() => void)[] = []
  let watch: Watch | undefined
  const pass = (act: () => void): void => {
    if (frozen) held.push(act)
    else if (delay_ms > 0) setTimeout(act, delay_ms)
    else act()
  }
  const carrier = (connection: object, direction: 'sent' | 'answered') =>
    new Transform({
      transform: (bytes: Buffer, _, done) =>
        pass(() => {
          watch?.(connection, direction, bytes)
          done(null, bytes)
        }),
    })
  const server = createServer((near) => {
    if (down) return void near.destroy()
    const far = connect({ host: hostname, port: Number(port) })
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(carrier(near, 'sent')).pipe(far)
    far.pipe(carrier(near, 'answered')).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const thaw = () => {
    frozen = false
    const acts = held
    held = []
    for (const act of acts) act()
  }
  return {
    /** The server as seen through the link, with its credentials. */
    url: url.href,
    cut: () => {
      down = true
      for (const socket of sockets) socket.destroy()
    },
    mend: () => {
      down = false
      delay_ms = 0
      thaw()
    },
    /** Nothing passes, and no one is notified: as when a machine stops, or a packet filter drops everything. */
    freeze: () => {
      frozen = true
    },
    thaw,
    /** Delays everything that passes, in each direction. */
    slow: (by_ms: number) => {
      delay_ms = by_ms
    },
    /** Shows the bytes that pass on each connection; `undefined` ends it. */
    watch: (watcher: Watch | undefined) => {
      watch = watcher
    },
    /** Leads to another server from now on, and cuts open connections unless they may stay. */
    turnTo: (other: string, stay = false) => {
      ;({ hostname, port } = new URL(other))
      if (!stay) for (const socket of sockets) socket.destroy()
    },
    stop: () => server.close(),
  }
}
export type Link = Awaited<ReturnType<typeof startLink>>
