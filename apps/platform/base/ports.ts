import { createServer } from 'node:net'

const HOST = '127.0.0.1'

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: HOST, exclusive: true }, () => server.close(() => resolve(true)))
  })

const FIRST = 10_000
const BLOCK = 100
const BLOCKS = 100
let drawn = 0

/**
 * A free port that nobody else takes before it is used: below those that the system gives to outgoing connections, and
 * from a block of this process, so that platforms which start side by side do not meet.
 */
const anyPort = async (): Promise<number> => {
  const block = FIRST + (process.pid % BLOCKS) * BLOCK
  for (let tries = 0; tries < BLOCK; tries++) {
    const port = block + (drawn++ % BLOCK)
    if (await isFree(port)) return port
  }
  throw new Error(`No port between ${block} and ${block + BLOCK - 1} is free on ${HOST}.`)
}

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
