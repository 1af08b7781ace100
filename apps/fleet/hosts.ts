import type { Server } from 'node:http'
import type { Logger } from '../shared/telemetry.ts'
import { createHostServer } from './host.ts'
import type { Host, Store } from './store.ts'

/** The number of ports that the executors' policy allows for hosts. */
const TRIES = 800

type HostsDeps = { address: string; known_as: string; port_base: number; token: string | undefined; log: Logger }

/** The running listeners: one per host, on the port in its record. */
export const createHosts = (store: Store, { address, known_as, port_base, token, log }: HostsDeps) => {
  const servers = new Map<string, Server>()

  /** Opens the host's listener; if its port is taken, uses the next free one and logs it. */
  const open = async (host: Host): Promise<Host> => {
    for (let port = host.port; port < host.port + TRIES; port++) {
      const server = createHostServer(store, host.hostname, token)
      if (await listen(server, port, address)) {
        if (port !== host.port)
          log.warn({ hostname: host.hostname, port: host.port, taken: true, now: port }, 'port taken, using another')
        const opened = { ...host, port }
        servers.set(host.hostname, server)
        store.saveHost(opened)
        return opened
      }
    }
    throw new Error(`no free port from ${host.port} for ${host.hostname}`)
  }

  const close = (hostname: string) =>
    new Promise<void>((resolve) => {
      const server = servers.get(hostname)
      servers.delete(hostname)
      if (!server) return resolve()
      server.close(() => resolve())
      server.closeAllConnections()
    })

  return {
    openAll: async () => {
      for (const host of store.hosts()) await open(host)
    },
    /** Adds a host, or changes the given fields of an existing one. */
    put: async (hostname: string, given: Partial<Pick<Host, 'resource_id' | 'region' | 'release'>>): Promise<Host> => {
      const known = store.host(hostname)
      if (known) {
        const changed = { ...known, ...given }
        store.saveHost(changed)
        return changed
      }
      return open({
        hostname,
        port: store.nextPort(port_base),
        resource_id: null,
        region: null,
        release: '1.0.0',
        traffic: 'in',
        drained_at: 0,
        deployed: 0,
        serial: 1,
        faults: {},
        ...given,
      })
    },
    remove: async (hostname: string) => {
      await close(hostname)
      store.removeHost(hostname)
    },
    urlOf: (host: Host) => `http://${known_as}:${host.port}`,
    closeAll: async () => {
      await Promise.all([...servers.keys()].map(close))
    },
  }
}
export type Hosts = ReturnType<typeof createHosts>

/** Returns whether the server listens; false if the port is taken. */
const listen = (server: Server, port: number, address: string) =>
  new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    )
    server.listen(port, address, () => resolve(true))
  })
