import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP pass-through that can be cut: the server behind it is then away for whoever goes through here. */
export const startLink = async (target: string) => {
  let { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let down = false
  let frozen = false
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
    near.pipe(far).pipe(near)
    if (frozen) for (const socket of [near, far]) socket.pause()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    /** The server as seen through the link, with its credentials. */
    url: url.href,
    cut: () => {
      down = true
      for (const socket of sockets) socket.destroy()
    },
    /** Nothing passes any more and nobody is told: as of a server that is frozen. */
    freeze: () => {
      for (const socket of sockets) socket.pause()
      frozen = true
    },
    mend: () => {
      down = false
      if (frozen) for (const socket of sockets) socket.resume()
      frozen = false
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
