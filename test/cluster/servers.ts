import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import type { Ports } from '../../apps/platform/base/ports.ts'
import { answers } from '../../apps/platform/base/probes.ts'
import { createProcess, type Managed } from '../../apps/platform/base/process.ts'
import { dataFolder, postgresCommand, unprivileged } from '../../apps/platform/servers/postgres.ts'
import { withConnection } from '../../db/connection.ts'
import { sentinelsOf } from '../support/redis.ts'
import { until } from '../support/until.ts'

const HOST = '127.0.0.1'

/** Works like a Kubernetes Service: each connection goes to the next process that accepts it. */
export const startBalancer = async (port: number, targets: readonly number[]) => {
  let turn = 0
  const server = createServer((near) => {
    near.on('error', () => {})
    const first = turn++
    const lead = (n: number): void => {
      if (n === targets.length || near.destroyed) return void near.destroy()
      const far = connect({ host: HOST, port: targets[(first + n) % targets.length] ?? 0 })
      let begun = false
      far.on('error', () => begun || lead(n + 1))
      far.on('connect', () => {
        begun = true
        near.pipe(far).pipe(near)
        far.on('close', () => near.destroy())
        near.on('close', () => far.destroy())
      })
    }
    lead(0)
  }).listen(port, HOST)
  await once(server, 'listening')
  return () => server.close()
}

/** Three NATS servers that replicate each stream. */
export const startNatsCluster = async (program: string, dir: string, ports: Ports) => {
  const seats: { name: string; port: number; route: number }[] = []
  for (const name of ['n1', 'n2', 'n3'])
    seats.push({ name, port: await ports.take(name, 0), route: await ports.take(`${name} route`, 0) })
  const routes = seats.map(({ route }) => `nats://${HOST}:${route}`)
  const nodes = seats.map(({ name, port, route }): Managed => {
    const store = join(dir, name)
    mkdirSync(store, { recursive: true })
    const file = join(store, 'nats.conf')
    writeFileSync(
      file,
      `host: ${HOST}\nport: ${port}\nserver_name: ${name}\nmax_payload: 1MB
jetstream { store_dir: ${JSON.stringify(store)}, max_file_store: 1TB, sync_interval: always }
cluster { name: signalbox, listen: "${HOST}:${route}", routes: ${JSON.stringify(routes)} }\n`,
    )
    const probe = () => answers(port, 'PING\r\n', /^INFO /)
    return createProcess({ name, command: () => ({ command: program, args: ['-c', file] }), probe }, join(dir, 'logs'))
  })
  await Promise.all(nodes.map((node) => node.start()))
  return { nodes, ports: seats.map(({ port }) => port) }
}

/** Two replicas of the Redis primary, and three Sentinels that promote one of them. */
export const startRedisGroup = async (program: string, dir: string, url: string, ports: Ports) => {
  const { port: of, password } = new URL(url)
  const config = readFileSync(join(dir, 'redis/redis.conf'), 'utf8')
  const replicas = new Map<number, Managed>()
  for (const name of ['redis-2', 'redis-3']) {
    const port = await ports.take(name, 0)
    const home = join(dir, name)
    mkdirSync(home, { recursive: true })
    const own = config.replace(/^port .*$/m, `port ${port}`).replace(/^dir .*$/m, `dir ${JSON.stringify(home)}`)
    const file = join(home, 'redis.conf')
    writeFileSync(file, `${own}replicaof ${HOST} ${of}\nmasterauth ${password}\n`)
    const probe = () => answers(port, `AUTH ${password}\r\nINFO replication\r\n`, /master_link_status:up|role:master/)
    const command = () => ({ command: program, args: [file] })
    replicas.set(port, createProcess({ name, command, probe }, join(dir, 'logs')))
  }
  await Promise.all([...replicas.values()].map((one) => one.start()))
  // The primary needs it once another one has taken its place.
  await answers(Number(of), `AUTH ${password}\r\nCONFIG SET masterauth ${password}\r\n`, /\+OK\r\n\+OK/)
  const sentinels = await sentinelsOf({ program, port: Number(of), password }, 3, dir)
  await sentinels.know(replicas.size)
  return {
    replicas,
    nodes: [...replicas.values(), ...sentinels.nodes],
    addresses: sentinels.addresses,
    primary: sentinels.primary,
    ports: [Number(of), ...replicas.keys()],
    /** Resolves if the server at this port replicates another one. */
    follows: (port: number) => answers(port, `AUTH ${password}\r\nINFO replication\r\n`, /master_link_status:up/),
  }
}

type Primary = { program: string; dir: string; url: string; secret: string; ports: Ports }

/** A synchronous standby from a copy of the primary's files: the Postgres packages here have no pg_basebackup. */
export const startStandby = async ({ program, dir, url, secret, ports }: Primary) => {
  const [from, to] = [dataFolder(dir), `${dataFolder(dir)}-standby`]
  const backup = new pg.Client({ connectionString: url })
  await backup.connect()
  await backup.query("select pg_create_physical_replication_slot('standby', true)")
  await backup.query("select pg_backup_start('standby', true)")
  execFileSync('cp', ['-a', from, to])
  const { rows } = await backup.query<{ labelfile: string }>('select labelfile from pg_backup_stop()')
  rmSync(join(to, 'postmaster.pid'), { force: true })
  const account = unprivileged()
  for (const [name, text] of [
    ['backup_label', rows[0]?.labelfile ?? ''],
    ['standby.signal', ''],
  ] as const) {
    writeFileSync(join(to, name), text)
    if (account) chownSync(join(to, name), account.uid, account.gid)
  }
  chmodSync(to, 0o700)
  const port = await ports.take('standby', 0)
  const own = new URL(url)
  own.port = String(port)
  const conninfo = `host=${HOST} port=${new URL(url).port} user=postgres password=${secret} application_name=standby`
  const settings = { primary_conninfo: conninfo, primary_slot_name: 'standby' }
  const standby = createProcess(
    {
      name: 'standby',
      command: () => postgresCommand(program, to, port, settings),
      probe: () =>
        withConnection({ connectionString: own.href }, async (client) => void (await client.query('select 1'))),
      stop_signal: 'SIGINT',
    },
    join(dir, 'logs'),
  )
  await standby.start()
  // From here on a commit waits until the standby has it on its disk.
  await backup.query("alter system set synchronous_standby_names = 'standby'")
  await backup.query('select pg_reload_conf()')
  const isSync = async () => {
    const found = await backup.query("select from pg_stat_replication where sync_state = 'sync'")
    return found.rowCount === 1
  }
  await until(isSync, { what: 'the synchronous standby' })
  await backup.end()
  const promote = () =>
    withConnection({ connectionString: own.href }, (client) => client.query('select pg_promote(true, 60)'))
  return { standby, port, promote }
}
