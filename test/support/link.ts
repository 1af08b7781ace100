import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Sees the bytes of one connection in each direction. */
export type Watch = (connection: object, direction: 'sent' | 'answered', bytes: Buffer) => void

/** A TCP pass-through that can be cut: the server behind it is then away for whoever goes through here. */
export const startLink = async (target: string) => {
  let { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const pairs = new Set<{ near: Socket; far: Socket }>()
  let down = false
  let frozen = false
  let watch: Watch | undefined
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
    const pair = { near, far }
    pairs.add(pair)
    near.on('close', () => pairs.delete(pair))
    if (frozen) return
    near.on('data', (bytes) => watch?.(near, 'sent', bytes))
    far.on('data', (bytes) => watch?.(near, 'answered', bytes))
    near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const thaw = () => {
    if (!frozen) return
    frozen = false
    for (const { near, far } of pairs) near.pipe(far).pipe(near)
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
      thaw()
    },
    /** Nothing passes any more, and nobody is told: as when a machine stops, or a packet filter swallows all. */
    freeze: () => {
      frozen = true
      for (const { near, far } of pairs) {
        near.unpipe(far)
        far.unpipe(near)
        near.pause()
        far.pause()
      }
    },
    thaw,
    /** Shows what passes on each connection; undefined ends it. */
    watch: (watcher: Watch | undefined) => {
      watch = watcher
    },
    /** Cuts what is open and leads to another server from now on. */
    turnTo: (other: string) => {
      ;({ hostname, port } = new URL(other))
      for (const socket of sockets) socket.destroy()
    },
    stop: () => server.close(),
  }
}
export type Link = Awaited<ReturnType<typeof startLink>>
