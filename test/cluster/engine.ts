import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import type { Ports } from '../../apps/platform/base/ports.ts'
import { listens } from '../../apps/platform/base/probes.ts'
import { createProcess, type Managed } from '../../apps/platform/base/process.ts'
import { writeWhole } from '../../apps/platform/base/record.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { ensureCertificates, type Wanted } from '../../apps/platform/deploy/certificates.ts'
import { nextSteps, serverFiles, TEMPORAL_ROLES } from '../../apps/platform/deploy/next-steps.ts'
import { cachePath, goInstall } from '../../apps/platform/servers/cache.ts'
import { which } from '../../apps/platform/servers/sources.ts'
import { locateTemporal } from '../../apps/platform/servers/temporal.ts'
import { findTool } from '../run/cluster-tools.ts'
import { typeBlock } from '../support/guides.ts'
import { until } from '../support/until.ts'
import { startBalancer } from './servers.ts'

const VERSION = '1.31.2'
const HOST = '127.0.0.1'
const READY_MS = 120_000
/** Four shards, which the two of history share. */
const SHARDS = 4
const ROLES = ['history', 'history', 'frontend', 'frontend', 'matching', 'worker'] as const
export const ENGINE = `Temporal ${VERSION} on Postgres by mutual TLS: ${ROLES.join(', ')}`

/** Temporal's server and the tool that makes its tables, built by Go once; undefined without Go. */
export const findEngine = async () => {
  if (!which('go')) return
  const built = (name: string, path: string) => {
    const target = cachePath(name, VERSION)
    const module = `go.temporal.io/server/cmd/${path}@v${VERSION}`
    return findTool(name, target, [goInstall(target, module, path.split('/').at(-1) ?? '', '4 to 10 minutes')])
  }
  return { server: await built('temporal-server', 'server'), tool: await built('temporal-sql-tool', 'tools/sql') }
}
type Programs = NonNullable<Awaited<ReturnType<typeof findEngine>>>

/** The engine looks after minutes whether a build is drained, which would be half of the whole test. */
const DRAINED_SOON = ['RefreshInterval', 'VisibilityGracePeriod']
  .map((name) => `matching.wv.VersionDrainageStatus${name}:\n  - value: 5s\n`)
  .join('')

/** Where each role will listen. The frontends have one address, at which a balancer listens from now on. */
export const placeEngine = async (ports: Ports) => {
  const seats: { name: string; role: string; rpc: { grpcPort: number; membershipPort: number; bindOnIP: string } }[] =
    []
  for (const [i, role] of ROLES.entries()) {
    const name = `temporal ${role} ${ROLES.slice(0, i).filter((other) => other === role).length + 1}`
    const [grpcPort, membershipPort] = [await ports.take(name, 0), await ports.take(`${name} members`, 0)]
    seats.push({ name, role, rpc: { grpcPort, membershipPort, bindOnIP: HOST } })
  }
  const port = await ports.take('temporal', 0)
  const frontends = seats.filter(({ role }) => role === 'frontend').map(({ rpc }) => rpc.grpcPort)
  return { seats, port, close: await startBalancer(port, frontends) }
}
type Place = Awaited<ReturnType<typeof placeEngine>>

/** `url` leads to Postgres as a superuser. */
type Asked = { programs: Programs; dir: string; url: string; namespace: string; begun: (nodes: Managed[]) => void }

/**
 * Temporal on Postgres, with a process for each role and the certificates, settings and commands that the setup of
 * production writes. Only apps with one of these certificates reach it: `settings` are theirs.
 */
export const startEngine = async ({ seats, port }: Place, { programs, dir, url, namespace, begun }: Asked) => {
  const home = join(dir, 'engine')
  await ensureCertificates(join(home, 'tls'), [{ name: 'temporal', host: 'localhost', as: ['server'] }])
  const callers: Wanted[] = [{ name: 'app', as: ['client'] }, TEMPORAL_ROLES]
  await ensureCertificates(join(home, 'tls'), callers, undefined, 'temporal-ca')
  const files = serverFiles(home)
  const dynamic = join(home, 'dynamic.yaml')
  writeWhole(dynamic, `${files['temporal/dynamic.yaml']}${DRAINED_SOON}`)
  await makeTables(programs.tool, url)
  const common = {
    ...settingsOf(url, `localhost:${port}`),
    dynamicConfigClient: { filepath: dynamic, pollInterval: '1m' },
    global: {
      ...parse(files['temporal/tls.yaml'] ?? '').global,
      membership: { maxJoinDuration: '30s', broadcastAddress: HOST },
    },
  }
  // A process knows every role, and where it listens itself; the others' places it hears from them.
  const roles = Object.fromEntries(seats.map(({ role, rpc }) => [role, { rpc }]))
  const nodes = seats.map(({ name, role, rpc }): Managed => {
    const file = join(home, `${name.replaceAll(' ', '-')}.json`) // JSON is YAML
    writeWhole(file, JSON.stringify({ ...common, services: { ...roles, [role]: { rpc } } }))
    const args = ['--config-file', file, '--allow-no-auth', 'start', '--service', role]
    const unit = { name, command: () => ({ command: programs.server, args }), probe: () => listens(rpc.grpcPort, HOST) }
    return createProcess({ ...unit, stop_timeout_ms: 15_000 }, join(dir, 'logs'))
  })
  begun(nodes)
  // The first alone: two that write what the cluster is at the same moment refuse each other.
  const [first, ...others] = nodes
  await first?.start()
  await Promise.all(others.map((node) => node.start()))
  const address = `tls://localhost:${port}`
  await makeNamespace({ at: home, postgres: url, temporal: address, namespace })
  const settings = {
    SIGNALBOX__TLS__CA_FILE: join(home, 'tls/ca.pem'),
    SIGNALBOX__TLS__CERT_FILE: join(home, 'tls/app.pem'),
    SIGNALBOX__TLS__KEY_FILE: join(home, 'tls/app.key'),
  }
  return { temporal: { address, ui_url: undefined, namespace, own: true }, settings, nodes }
}

/** The commands of NEXT.md, once the engine has found itself. */
const makeNamespace = async (asked: Parameters<typeof nextSteps>[0]): Promise<void> => {
  const [, block = ''] = /```\n([\s\S]+?)```/.exec(nextSteps(asked, [])) ?? []
  const [settings = ''] = block.split('\n', 1)
  const env = { PATH: `${dirname(await locateTemporal(silentScreen))}:${process.env.PATH}`, HOME: asked.at }
  const serves = () =>
    typeBlock(`${settings}\ntemporal operator cluster health`, env).then(
      () => true,
      () => false,
    )
  await until(serves, { what: 'the frontends of Temporal', timeout_ms: READY_MS })
  await typeBlock(block, env)
}

const DATABASES = { default: 'temporal', visibility: 'temporal_visibility' } as const

const makeTables = async (tool: string, url: string): Promise<void> => {
  const { hostname, port, username, password } = new URL(url)
  const account = ['--user', username, '--password', decodeURIComponent(password)]
  for (const [kind, database] of Object.entries(DATABASES)) {
    const run = (...args: string[]) =>
      promisify(execFile)(tool, [
        ...['--plugin', 'postgres12', '--endpoint', hostname, '--port', port, ...account, '--database', database],
        ...args,
      ])
    await run('create')
    await run('setup-schema', '--version', '0.0')
    const schema = kind === 'default' ? 'temporal' : kind
    await run('update-schema', '--schema-name', `postgresql/v12/${schema}`)
  }
}

const settingsOf = (url: string, address: string) => {
  const { host, username, password } = new URL(url)
  const store = (databaseName: string, maxConns: number) => ({
    sql: {
      ...{ pluginName: 'postgres12', databaseName, connectAddr: host, connectProtocol: 'tcp' },
      ...{ user: username, password: decodeURIComponent(password), maxConns, maxIdleConns: maxConns },
    },
  })
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      ...{ numHistoryShards: SHARDS, defaultStore: 'default', visibilityStore: 'visibility' },
      datastores: { default: store(DATABASES.default, 8), visibility: store(DATABASES.visibility, 2) },
    },
    clusterMetadata: {
      ...{ failoverVersionIncrement: 10, masterClusterName: 'active', currentClusterName: 'active' },
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address },
      },
    },
    publicClient: { hostPort: address },
  }
}
