import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateRedis } from '../../apps/platform/servers/redis.ts'
import { until } from './until.ts'

const SAFE = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction', '--save', '']

/** A Redis of a test's own, for tests that a shared one cannot serve: replicas, and an outage. */
export const startOwnRedis = async () => {
  const program = await locateRedis(silentScreen)
  const port = await createPorts().take('redis', 0)
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-redis-'))
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--repl-diskless-sync-delay', '0']
  const child = spawn(program, [...place, ...SAFE], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  await client.ping()
  const told = async (line: string): Promise<boolean> => (await client.info('replication')).includes(line)
  return {
    url,
    client,
    /** Copies another one from now on; resolves when it has all that the other had. */
    follow: async (primary: string) => {
      const { hostname, port: of } = new URL(primary)
      await client.replicaof(hostname, Number(of))
      await until(() => told('master_link_status:up'), { what: 'the replica to be in step' })
      // The other one counts it a moment later.
      const other = new Redis(primary)
      await until(async () => (await other.wait(1, 1000)) === 1, { what: 'the primary to count its replica' })
      other.disconnect()
    },
    /** Copies no more and takes writes: what a fail-over makes of a replica. */
    promote: () => client.replicaof('NO', 'ONE'),
    stop: async () => {
      client.disconnect()
      child.kill('SIGKILL')
      await exited
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
