import { createServer } from 'node:net'

const HOST = '127.0.0.1'

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => resolve(true)))
  })

const anyPort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port: 0, host: HOST }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

const HIGHEST_TRY = 200

/**
 * Hands out loopback ports: the wanted one, or the next free one, never the same twice. A wish of 0 takes any free
 * port. `moved` hears of each port that was taken.
 */
export const createPorts = (moved: (name: string, wanted: number, got: number) => void = () => {}) => {
  const given = new Set<number>()
  const take = async (name: string, wanted: number): Promise<number> => {
    if (wanted === 0) {
      const port = await anyPort()
      return given.has(port) ? take(name, 0) : keep(port)
    }
    for (let port = wanted; port < wanted + HIGHEST_TRY; port++) {
      if (given.has(port) || !(await isFree(port))) continue
      if (port !== wanted) moved(name, wanted, port)
      return keep(port)
    }
    throw new Error(`${name}: no port between ${wanted} and ${wanted + HIGHEST_TRY} is free on ${HOST}.`)
  }
  const keep = (port: number) => {
    given.add(port)
    return port
  }
  return { take }
}

export type Ports = ReturnType<typeof createPorts>
