import { spawn } from 'node:child_process'
import { readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JetStreamManager, StorageType } from 'nats'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { ensureCertificates } from '../../apps/platform/deploy/certificates.ts'
import { weakNats } from '../../apps/platform/deploy/doctor/weaknesses.ts'
import { locateNats } from '../../apps/platform/servers/nats.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { ensureExecution, raiseExecution } from '../../apps/shared/events/execution-stream.ts'
import { linksOfProcess, loadLinks } from '../../apps/shared/links.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { createNats } from '../../apps/worker/nats.ts'
import { startNatsCluster } from '../cluster/servers.ts'
import { serverUrl } from '../support/database.ts'
import { scratchFolder } from '../support/servers.ts'
import { until } from '../support/until.ts'

const NAME = `beyond_the_disk_${process.pid}`
let nc: Awaited<ReturnType<typeof connectNats>>
let jsm: JetStreamManager
beforeAll(async () => {
  nc = await connectNats(serverUrl('NATS_URL'), 'test')
  jsm = await nc.jetstreamManager()
})
afterAll(async () => {
  await jsm.streams.delete(NAME).catch(() => undefined)
  await nc.close()
})

it('reserves more for its streams than the disk has free, so that the platform starts on a small disk', async () => {
  const { bavail, bsize } = statfsSync(tmpdir())
  const { config } = await jsm.streams.add({
    name: NAME,
    subjects: [`${NAME}.>`],
    storage: StorageType.File,
    max_bytes: Math.min(bavail * bsize, 512 * 1024 ** 3),
  })
  expect(config.name).toBe(NAME)
})

it('a worker says that it cannot raise the copies of the stream of agents, and tries again', async () => {
  const prefix = `copies_${process.pid}_`
  await ensureExecution(nc, prefix, 'lab')
  const { log } = createTelemetry('test')
  const warn = vi.spyOn(log, 'warn').mockReturnValue()
  linksOfProcess().nats_replicas = 3
  const worker = createNats(serverUrl('NATS_URL'), prefix, log, ['lab'])
  try {
    await until(() => warn.mock.calls.length > 1)
    expect(warn.mock.lastCall?.[1]).toBe('not ready on NATS; trying again')
  } finally {
    linksOfProcess().nats_replicas = 1
    await worker.close()
    await jsm.streams.delete(`${prefix}EXECUTION`)
  }
})

it('the doctor names streams that a cluster keeps on one server', async () => {
  const dir = scratchFolder()
  const { nodes, ports } = await startNatsCluster(await locateNats(silentScreen), dir, createPorts())
  try {
    const url = `nats://127.0.0.1:${ports[0]}`
    const subject = { app: 'worker', links: loadLinks({}), prefix: '', namespace: '' }
    const told = async () => (await weakNats(subject, url)).filter(([what]) => what.includes('one lost server'))
    const own = await connectNats(url, 'test')
    const streams = await until(() => own.jetstreamManager(), { what: 'the cluster' })
    await until(() => streams.streams.add({ name: 'ONE', subjects: ['one'] }), { what: 'a leader' })
    expect(await told()).toEqual([[expect.stringContaining('these streams: ONE'), expect.stringContaining('to 3')]])
    const { config } = await streams.streams.info('ONE')
    await streams.streams.update('ONE', { ...config, num_replicas: 3 })
    expect(await told()).toEqual([])
    // Agents' work, whose stream was made before there were three servers.
    await ensureExecution(own, '', 'lab')
    expect(await told()).toEqual([[expect.stringContaining('these streams: EXECUTION'), expect.anything()]])
    linksOfProcess().nats_replicas = 3
    await raiseExecution(own, '')
    expect(await told()).toEqual([])
    await own.close()
  } finally {
    linksOfProcess().nats_replicas = 1
    await Promise.all(nodes.map((node) => node.stop()))
    rmSync(dir, { recursive: true, force: true })
  }
}, 120_000)

it('is reached by TLS at an IPv6 address', async () => {
  const dir = scratchFolder()
  const port = await createPorts().take('nats', 0)
  const { cert_file, key_file, ca_file } = await certificatesOf(dir)
  const config = join(dir, 'nats.conf')
  writeFileSync(config, `host: "::1"\nport: ${port}\ntls { cert_file: "${cert_file}", key_file: "${key_file}" }\n`)
  const server = spawn(await locateNats(silentScreen), ['-c', config], { stdio: 'ignore' })
  const links = { ...loadLinks({}), tls: { ca: readFileSync(ca_file, 'utf8') } }
  try {
    const reached = () => connectNats(`tls://[::1]:${port}`, 'test', links)
    const own = await until(reached, { what: 'the server' })
    await own.flush()
    await own.close()
  } finally {
    server.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
}, 60_000)

it('a connection outlasts repeated refusals while the accounts of the server are renewed', async () => {
  const dir = scratchFolder()
  const port = await createPorts().take('nats', 0)
  const config = join(dir, 'nats.conf')
  const write = (password: string) =>
    writeFileSync(
      config,
      `host: 127.0.0.1\nport: ${port}\nauthorization { users: [{ user: app, password: ${password} }] }\n`,
    )
  write('right')
  const server = spawn(await locateNats(silentScreen), ['-c', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  let told = ''
  server.stderr.on('data', (bytes: Buffer) => {
    told += bytes.toString()
  })
  try {
    const reached = () => connectNats(`nats://app:right@127.0.0.1:${port}`, 'test', loadLinks({}))
    const own = await until(reached, { what: 'the server' })
    write('wrong')
    server.kill('SIGHUP')
    const refused = () => told.split('authentication error').length > 4
    await until(refused, { what: 'refusals' })
    write('right')
    server.kill('SIGHUP')
    await until(() => own.flush().then(() => true), { what: 'the connection' })
    expect(own.isClosed()).toBe(false)
    await own.close()
  } finally {
    server.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
}, 60_000)

const certificatesOf = async (dir: string) => {
  await ensureCertificates(dir, [{ name: 'nats', host: '::1', as: ['server'] }])
  const [cert_file, key_file, ca_file] = ['nats.pem', 'nats.key', 'ca.pem'].map((name) => join(dir, name))
  return { cert_file, key_file, ca_file: ca_file ?? '' }
}
