import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { bold, dim, table } from '../../shared/data/print.ts'
import { placeOf, register } from './catalog.ts'
import { type Account, accountOf, type Person, signIn } from './client.ts'
import { createFleetClient, type FleetClient } from './fleet.ts'
import { type Manifest, parseManifest } from './kubernetes.ts'
import { startOperation } from './operations.ts'
import { follow, rollOut } from './rollout.ts'
import { type DemoTool, toolEffects, toolIntent } from './runner.ts'

export type Story = { gateway_url: string; fleet_url: string; accounts: Account[]; print: (line: string) => void }

const BEFORE = 'none'
const nextRelease = () => `3.0.${Math.floor(Date.now() / 1000) % 100_000}`

const people = async ({ gateway_url, accounts }: Story) => {
  const account = (username: string) => signIn(gateway_url, accountOf(accounts, username, 'run npm start first'))
  const [admin, operator, approver] = await Promise.all([account('ada'), account('olga'), account('eva')])
  return { admin, operator, approver }
}

/** Creates a separate segment for the hosts of one story. Returns the segment's id. */
const addPlace = async (admin: Person, name: string): Promise<string> => {
  await register(admin, placeOf('region', 'demo', { code: 'demo' }))
  await register(admin, placeOf('datacenter', 'demo-a', { code: 'demo-a' }, 'demo'))
  await register(admin, placeOf('layer', 'demo-a-app', { layer_kind: 'app' }, 'demo-a', 'app'))
  await register(admin, placeOf('segment', `demo-${name}`, { zone: name }, 'demo-a-app', name))
  return `demo-${name}`
}

type NewHost = {
  hostname: string
  segment: string
  release: string
  labels: Record<string, string>
  relationships: { type_key: string; target_id: string }[]
}

const addHost = async (
  admin: Person,
  fleet: FleetClient,
  { hostname, segment, release, labels, relationships }: NewHost,
) => {
  const { base_url } = await fleet.addHost(hostname, { resource_id: hostname, region: 'demo', release })
  await register(
    admin,
    {
      resource_id: hostname,
      type_key: 'fleet.host',
      name: hostname,
      parent_id: segment,
      labels: { environment: 'demo', ...labels },
      lifecycle_status: 'active',
      desired_state: { hostname, release, traffic: 'in' },
      observed_state: { hostname, base_url, release, traffic: 'in' },
      relationships,
    },
    { record_only: true },
  )
}

/**
 * `npm run demo -- --from <manifest>`: the Deployments of a Kubernetes manifest become hosts that really listen, and
 * their `*_ADDR` values become dependencies. The release that most of them name is rolled out in dependency order.
 */
export const runManifestStory = async (story: Story, file: string): Promise<string> => {
  const { print } = story
  const source = basename(file)
    .replace(/\.[^.]*$/, '')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .slice(0, 24)
  const manifest = parseManifest(readFileSync(file, 'utf8'))
  const release = commonRelease(manifest)
  const targets = manifest.workloads.filter((workload) => workload.release === release)
  const hostOf = (workload: string) => `${source}.${workload}`

  print(bold(`Read ${file}`))
  const rows = manifest.workloads.map(({ name, release: tag, depends_on }) => {
    return [name, tag, depends_on.join(', ') || dim('nothing')]
  })
  for (const line of table(['deployment', 'release', 'calls'], rows)) print(`  ${line}`)
  for (const note of manifest.notes) print(`  ${dim(note)}`)

  const { admin, operator, approver } = await people(story)
  const fleet = createFleetClient(story.fleet_url)
  print(
    bold(`Register ${manifest.workloads.length} hosts and ${manifest.services.length} services as ${admin.username}`),
  )
  const segment = await addPlace(admin, source)
  for (const workload of manifest.workloads) {
    const relationships = workload.depends_on.map((callee) => ({ type_key: 'depends_on', target_id: hostOf(callee) }))
    const now = workload.release === release ? BEFORE : workload.release
    await addHost(admin, fleet, {
      hostname: hostOf(workload.name),
      segment,
      release: now,
      labels: { 'kubernetes.io/name': workload.name },
      relationships,
    })
  }
  for (const service of manifest.services) {
    const relationships = service.workloads.map((workload) => ({ type_key: 'depends_on', target_id: hostOf(workload) }))
    await register(admin, {
      resource_id: `${source}-${service.name}`,
      type_key: 'infra.service',
      name: `${source}-${service.name}`,
      desired_state: { ...(service.port && { port: service.port }) },
      relationships,
    })
  }
  print(`  fleet hosts listening: ${manifest.workloads.length}`)
  const others = manifest.workloads.length - targets.length
  if (others > 0)
    print(`  ${dim(`hosts of another release, left unchanged: ${others}; the others may depend on them`)}`)
  const hosts = targets.map((workload) => hostOf(workload.name))
  return rollOut({
    operator,
    approver,
    fleet,
    print,
    hosts,
    release,
    title: `${source} ${release}`,
    name: `manifest ${source} ${Date.now()}`,
  })
}

const commonRelease = ({ workloads }: Manifest): string => {
  const counts = Map.groupBy(workloads, (workload) => workload.release)
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? 'latest'
}

/** `npm run demo`: four extra hosts get the next release, step by step, while you look at the console. */
export const runSmallStory = async (story: Story): Promise<string> => {
  const { admin, operator, approver } = await people(story)
  const fleet = createFleetClient(story.fleet_url)
  const release = nextRelease()
  const hosts = [1, 2, 3, 4].map((n) => `demo-app-${n}`)
  story.print(bold(`Register ${hosts.length} hosts as ${admin.username}`))
  const segment = await addPlace(admin, 'apps')
  for (const hostname of hosts)
    await addHost(admin, fleet, { hostname, segment, release: '3.0.0', labels: {}, relationships: [] })
  return rollOut({
    operator,
    approver,
    fleet,
    print: story.print,
    hosts,
    release,
    title: `apps ${release}`,
    name: `story ${release}`,
  })
}

/** `npm run demo -- opentofu` and its like: the next release of the demo's site by a real tool, as its preview says. */
export const runToolStory = async (story: Story, tool: DemoTool, dir: string): Promise<string> => {
  const { operator, approver } = await people(story)
  const { print } = story
  const release = nextRelease()
  const intent = toolIntent(tool, release)
  print(bold(`Preview and start "${intent.title}" as ${operator.username}`))
  const { operation_id } = await startOperation(operator, `tool ${intent.title}`, intent)
  const status = await follow({ approver, title: intent.title, print }, operation_id)
  if (!status.startsWith('succeeded')) return status
  print(bold('The effect'))
  for (const line of await toolEffects(tool, dir, release)) print(`  ${line}`)
  return status
}
