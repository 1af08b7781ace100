import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { cacheDir } from './paths.ts'
import { bornAt } from './pids.ts'

const HOST = '127.0.0.1'

const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT']

/**
 * Whether a loopback port is free at this moment. This is only a look: binding decides. On ::1 too: a browser tries
 * that first for `localhost`, and a stranger there would get our passwords.
 */
const isFree = async (port: number): Promise<boolean> => (await canBind(port, HOST)) && canBind(port, '::1')

const canBind = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(NO_SUCH_ADDRESS.includes(code)))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })

/**
 * The ports that processes of this user have chosen and may not have bound yet: one empty file each, named by port and
 * process. Each process writes first and looks afterwards, so of two at the same moment at least one sees the other. A
 * process removes its file; any other may do so after it has ended.
 */
const claims = () => {
  const dir = join(cacheDir(), 'ports')
  const me = `${process.pid}-${idOf(process.pid)}`
  const holders = (port: number): string[] =>
    readdirSync(dir)
      .filter((name) => name.startsWith(`${port}.`))
      .map((name) => name.slice(`${port}.`.length))
  const lives = (holder: string): boolean => {
    const [pid = '', ...born] = holder.split('-')
    return idOf(Number(pid)) === born.join('-')
  }
  const release = (port: number) => {
    try {
      rmSync(join(dir, `${port}.${me}`), { force: true })
    } catch {
      // In a cache of another account there is none.
    }
  }
  const claim = (port: number): boolean => {
    try {
      mkdirSync(dir, { recursive: true })
      writeFileSync(join(dir, `${port}.${me}`), '')
      for (const holder of holders(port)) {
        if (holder === me) continue
        if (lives(holder)) {
          release(port)
          return false
        }
        rmSync(join(dir, `${port}.${holder}`), { force: true })
      }
    } catch {
      // If the cache cannot be written, only the bind decides.
    }
    return true
  }
  return { claim, release }
}

const idOf = (pid: number): string | undefined => bornAt(pid)?.replaceAll(/\W+/g, '_')

const FIRST = 10_000
const LAST = 19_999
const BLOCK = 100
let drawn = 0

/** A port below those that the system gives to outgoing connections; each process starts at a different place. */
const anyPort = (): number => {
  const count = LAST - FIRST + 1
  return FIRST + ((((process.pid * BLOCK) % count) + drawn++) % count)
}

const HIGHEST_TRY = 400
export const LAST_PORT = 65_535

/**
 * Chooses loopback ports: the wanted one, or the next free one that no other platform of this user has chosen. Port 0
 * means any. `moved` reports each port that was taken. Another process may still bind it first; `keep` handles that.
 */
export const createPorts = (moved: (name: string, wanted: number, got: number) => void = () => {}) => {
  const { claim, release } = claims()
  const given = new Set<number>()
  const get = async (port: number): Promise<boolean> => {
    if (given.has(port) || !claim(port)) return false
    if (await isFree(port)) {
      given.add(port)
      return true
    }
    release(port)
    return false
  }

  const take = async (name: string, wanted: number): Promise<number> => {
    for (let tries = 0; tries < HIGHEST_TRY; tries++) {
      const port = wanted === 0 ? anyPort() : wanted + tries
      if (port > LAST_PORT) break
      if (!(await get(port))) continue
      if (wanted !== 0 && port !== wanted) moved(name, wanted, port)
      return port
    }
    throw new Error(`${name}: of the ${HIGHEST_TRY} ports from ${wanted || FIRST} none up to ${LAST_PORT} is free.`)
  }

  return {
    take,
    /** The same port if it is free after all, otherwise the next one. */
    keep: async (name: string, port: number): Promise<number> => {
      if (await isFree(port)) return port
      release(port)
      const next = await take(name, port + 1)
      moved(name, port, next)
      return next
    },
  }
}

export type Ports = ReturnType<typeof createPorts>
