import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { answers } from '../../apps/platform/base/probes.ts'
import { createProcess, type Managed } from '../../apps/platform/base/process.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { locateRedis } from '../../apps/platform/servers/redis.ts'
import { until } from './until.ts'

const SAFE = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction', '--save', '']

/** A separate Redis, for tests that a shared one cannot serve: replicas, and an outage. */
export const startOwnRedis = async () => {
  const program = await locateRedis(silentScreen)
  const port = await createPorts().take('redis', 0)
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-redis-'))
  const place = ['--port', String(port), '--bind', '127.0.0.1', '-::1', '--dir', dir, '--repl-diskless-sync-delay', '0']
  const child = spawn(program, [...place, ...SAFE], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {})
  await client.ping()
  const told = async (line: string): Promise<boolean> => (await client.info('replication')).includes(line)
  return {
    url,
    program,
    port,
    client,
    /** Like a process that is gone; by SIGSTOP like a machine that has left the network. */
    kill: (signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL') => child.kill(signal),
    /** Replicates another one from now on; resolves when it has all of the other's data. */
    follow: async (primary: string) => {
      const { hostname, port: of } = new URL(primary)
      await client.replicaof(hostname, Number(of))
      await until(() => told('master_link_status:up'), { what: 'the replica to be in step' })
      // The other one counts it a moment later.
      const other = new Redis(primary)
      await until(async () => (await other.wait(1, 1000)) === 1, { what: 'the primary to count its replica' })
      other.disconnect()
    },
    /** Stops replicating and accepts writes, as a failover does with a replica. */
    promote: () => client.replicaof('NO', 'ONE'),
    stop: async () => {
      client.disconnect()
      child.kill('SIGKILL')
      await exited
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The watched server: a Redis primary and the password of its default account. */
type Watched = { program: string; port: number; password?: string }

/** Sentinels that watch one primary as `signalbox` and replace it with a replica a second after it went silent. */
export const sentinelsOf = async ({ program, port: of, password }: Watched, count: number, dir: string) => {
  const ports = createPorts()
  const seats = await Promise.all(Array.from({ length: count }, (_, i) => ports.take(`sentinel ${i + 1}`, 0)))
  const nodes = seats.map((port, i): Managed => {
    const home = join(dir, `sentinel-${i + 1}`)
    mkdirSync(home, { recursive: true })
    const file = join(home, 'sentinel.conf')
    const lines = [
      ...['bind 127.0.0.1 -::1', `port ${port}`, `dir ${JSON.stringify(home)}`],
      `sentinel monitor signalbox 127.0.0.1 ${of} ${Math.floor(count / 2) + 1}`,
      ...(password ? [`sentinel auth-pass signalbox ${password}`] : []),
      'sentinel down-after-milliseconds signalbox 1000',
      'sentinel failover-timeout signalbox 5000',
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    const probe = () => answers(port, 'PING\r\n', /PONG/)
    return createProcess(
      { name: `sentinel-${i + 1}`, command: () => ({ command: program, args: [file, '--sentinel'] }), probe },
      join(dir, 'logs'),
    )
  })
  await Promise.all(nodes.map((node) => node.start()))
  const ask = async (command: string, port = seats[0] as number): Promise<unknown> => {
    const redis = new Redis({ host: '127.0.0.1', port })
    try {
      return await redis.call('SENTINEL', command, 'signalbox')
    } finally {
      redis.disconnect()
    }
  }
  const knows = async (port: number, replicas: number) => {
    const told = (await ask('MASTER', port)) as string[]
    const of = (name: string) => Number(told[told.indexOf(name) + 1])
    return of('num-slaves') === replicas && of('num-other-sentinels') === count - 1
  }
  return {
    nodes,
    /** In the form of SIGNALBOX__REDIS__SENTINELS. */
    addresses: seats.map((port) => `127.0.0.1:${port}`).join(),
    /** Resolves when all know this many replicas and one another. */
    know: (replicas: number) =>
      until(async () => (await Promise.all(seats.map((port) => knows(port, replicas)))).every(Boolean), {
        what: 'the Sentinels to know the replicas',
      }),
    /** The port of the primary, as the first of them sees it. */
    primary: async () => Number(((await ask('GET-MASTER-ADDR-BY-NAME')) as string[])[1]),
  }
}
