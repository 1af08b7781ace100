import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { ensureInstallation } from '../../apps/platform/base/installation.ts'
import { createPorts, type Ports } from '../../apps/platform/base/ports.ts'
import { knowsNamespace } from '../../apps/platform/base/probes.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { createServerSecrets, ensureServers, type Servers, startServers } from '../../apps/platform/servers/up.ts'
import { withoutGivenServers } from '../support/servers.ts'
import { until } from '../support/until.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

/** Two installations that want the same ports: the servers of the second find those of the first there. */
type Side = { dir: string; servers: Servers; moved: string[] }
const sides: Side[] = []

const startSide = (ports: Ports): Promise<Side> =>
  withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], async () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-side-'))
    chmodSync(dir, 0o755)
    const moved: string[] = []
    const servers = await startServers({
      dir,
      installation: ensureInstallation(dir),
      programs: await ensureServers(silentScreen),
      secrets: createServerSecrets([]),
      plain: true,
      ports,
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
      moved: (name) => void moved.push(name),
    })
    const side = { dir, servers, moved }
    sides.push(side)
    return side
  })

const addresses = ({ servers }: Side) => [
  servers.postgres.admin_url.replace(/.*@/, ''),
  servers.redis.url().replace(/.*@/, ''),
  servers.nats.url().replace(/.*\/\//, ''),
  servers.temporal.address,
]

let first: Side
let second: Side
beforeAll(async () => {
  const ports = createPorts()
  const chosen = new Map<string, number>()
  first = await startSide({
    ...ports,
    take: async (name, wanted) => {
      const port = await ports.take(name, wanted)
      chosen.set(name, port)
      return port
    },
  })
  second = await startSide({ ...ports, take: async (name, wanted) => chosen.get(name) ?? ports.take(name, wanted) })
})
afterAll(async () => {
  for (const { servers, dir } of sides) {
    await servers.stop()
    rmSync(dir, { recursive: true, force: true })
  }
})

it('each server that finds a stranger at its port takes another, and none mistakes the stranger for itself', () => {
  expect(second.moved.sort()).toEqual(['nats', 'postgres', 'redis', 'temporal'])
  for (const address of addresses(second)) expect(addresses(first)).not.toContain(address)
  for (const { managed } of [first.servers, second.servers]) expect(managed.every(({ running }) => running)).toBe(true)
})

it('each engine knows only the namespace of its own installation', async () => {
  const [a, b] = [first.servers.temporal, second.servers.temporal]
  await knowsNamespace(a.address, a.namespace)
  await knowsNamespace(b.address, b.namespace)
  await expect(knowsNamespace(a.address, b.namespace)).rejects.toThrow(/not found/)
  expect(a.namespace).toMatch(/^sb-[0-9a-f]{8}$/)
})

it('an engine that runs but does not answer is restarted, and keeps its data', async () => {
  const { temporal, managed } = first.servers
  const engine = managed.find(({ name }) => name === 'temporal')
  const before = engine?.pid
  engine?.kill('SIGSTOP')
  await until(() => engine?.pid !== before, {
    timeout_ms: 120_000,
    every_ms: 500,
    what: 'another process of the engine',
  })
  await engine?.ready()
  await knowsNamespace(temporal.address, temporal.namespace)
})
