import { digest } from '../../shared/data/digest.ts'
import { ApiError, type Person } from './client.ts'
import type { FleetClient } from './fleet.ts'

/** The demo's places, hosts and services. Two regions have two datacenters each; hosts alternate between them. */
const REGIONS = ['eu1', 'us1'] as const
export type Region = (typeof REGIONS)[number]
const START_RELEASE = '2.3.9'

/** Services by name with the ones they call: shown as a graph, used for impact and ordering. */
const SERVICES: { name: string; tier: number; depends_on: string[] }[] = [
  { name: 'session-store', tier: 1, depends_on: [] },
  { name: 'product-search', tier: 2, depends_on: [] },
  { name: 'payments', tier: 1, depends_on: ['session-store'] },
  { name: 'checkout', tier: 1, depends_on: ['payments', 'session-store'] },
  { name: 'storefront', tier: 1, depends_on: ['checkout', 'product-search', 'session-store'] },
]

export const hostNames = (region: Region, hosts: number): string[] =>
  Array.from(
    { length: Math.floor(hosts / REGIONS.length) },
    (_, i) => `${region}-web-${String(i + 1).padStart(2, '0')}`,
  )

export const placeOf = (
  level: 'region' | 'datacenter' | 'layer' | 'segment',
  resource_id: string,
  desired_state: Record<string, string>,
  parent_id?: string,
  name = resource_id,
) => ({ resource_id, type_key: `topology.${level}`, name, ...(parent_id && { parent_id }), desired_state })

/** Registers a resource; leaves an existing one of an interrupted seed or an edited manifest as it is. */
export const register = async (
  person: Person,
  resource: Record<string, unknown>,
  { record_only = false } = {},
): Promise<void> => {
  try {
    await person.post(
      `/v1/resources${record_only ? '?mode=record_only' : ''}`,
      resource,
      `resource ${resource.resource_id} ${digest(resource)}`,
    )
  } catch (error) {
    if (error instanceof ApiError && error.body.code === 'already_exists') return
    throw error
  }
}

const inBatches = async <T>(items: T[], size: number, run: (item: T) => Promise<void>) => {
  for (let i = 0; i < items.length; i += size) await Promise.all(items.slice(i, i + size).map(run))
}

/** Registers places, services and hosts through the public API and gives each host a real listener. Returns the number of resources. */
export const seedCatalog = async (
  admin: Person,
  fleet: FleetClient,
  hosts: number,
  progress: (text: string) => void,
): Promise<number> => {
  let count = 0
  const add: Add = async (resource, options = {}) => {
    await register(admin, resource, options)
    count += 1
  }
  await addPlaces(add)
  progress(`${count} places`)
  await addServices(add, fleet)
  progress(`${count} places and services`)
  for (const region of REGIONS) {
    await inBatches(hostNames(region, hosts), 6, (hostname) =>
      addHost(admin, fleet, region, hostname).then(() => {
        count += 1
      }),
    )
    await offerRoom(admin, region, hostNames(region, hosts))
    progress(`${count} resources, the hosts of ${region} are listening`)
  }
  return count
}

type Add = (resource: Record<string, unknown>, options?: { record_only?: boolean }) => Promise<void>

const addPlaces = async (add: Add): Promise<void> => {
  for (const region of REGIONS) {
    await add(placeOf('region', region, { code: region }))
    for (const place of ['a', 'b']) {
      const datacenter = `${region}-${place}`
      await add(placeOf('datacenter', datacenter, { code: datacenter }, region))
      await add(placeOf('layer', `${datacenter}-edge`, { layer_kind: 'edge' }, datacenter, 'edge'))
      await add(placeOf('segment', `${datacenter}-web`, { zone: datacenter }, `${datacenter}-edge`, 'web'))
    }
  }
}

/** Each service has a listener of its own, so that its health is observed like that of a host. */
const addServices = async (add: Add, fleet: FleetClient): Promise<void> => {
  for (const region of REGIONS) {
    for (const { name, tier, depends_on } of SERVICES) {
      const relationships = depends_on.map((service) => ({ type_key: 'depends_on', target_id: `${region}-${service}` }))
      const resource_id = `${region}-${name}`
      await fleet.addHost(resource_id, { resource_id, region, release: START_RELEASE })
      await add({
        resource_id,
        type_key: 'infra.service',
        name: resource_id,
        labels: { environment: 'demo' },
        desired_state: { tier, protocol: 'http' },
        relationships,
      })
    }
    await add({
      resource_id: `${region}-web-pool`,
      type_key: 'infra.pool',
      name: `${region}-web-pool`,
      parent_id: `${region}-a-web`,
      desired_state: { role: 'web', min_healthy: 2 },
    })
  }
  // It needs storage that no resource provides, so the page of capabilities shows the gap.
  await add(
    {
      resource_id: 'eu1-orders',
      type_key: 'infra.database',
      name: 'eu1-orders',
      parent_id: 'eu1-a-web',
      labels: { environment: 'demo' },
      desired_state: { engine: 'postgres', engine_version: '18' },
    },
    { record_only: true },
  )
}

const IMPORTED_AT_ONCE = 100

/** The capabilities of the hosts, as an import adds them: room for machines. */
const offerRoom = async (admin: Person, region: Region, names: string[]): Promise<void> => {
  for (let from = 0; from < names.length; from += IMPORTED_AT_ONCE) {
    const items = names
      .slice(from, from + IMPORTED_AT_ONCE)
      .map((name, i) => ({
        external_id: name,
        type_key: 'fleet.host',
        name,
        parent_id: `${datacenterOf(region, name)}-web`,
        provided_capabilities: [
          {
            op: 'add',
            capability_key: 'compute.slots',
            version: '1.0.0',
            attributes: { cpu_cores: 16, memory_mib: 65_536, arch: i % 4 === 3 ? 'arm64' : 'amd64' },
            capacity: { total: 8, used: 2 },
          },
        ],
      }))
    const inventory = { source: { kind: 'demo', name: 'demo-inventory' }, items, options: { adopt: true } }
    await admin.post('/v1/resources:import', inventory, `inventory of ${region} from ${from}`)
  }
}

const datacenterOf = (region: Region, hostname: string): string =>
  `${region}-${Number(hostname.slice(-2)) % 2 === 1 ? 'a' : 'b'}`

const addHost = async (admin: Person, fleet: FleetClient, region: Region, hostname: string): Promise<void> => {
  const { base_url } = await fleet.addHost(hostname, { resource_id: hostname, region, release: START_RELEASE })
  await register(
    admin,
    {
      resource_id: hostname,
      type_key: 'fleet.host',
      name: hostname,
      parent_id: `${datacenterOf(region, hostname)}-web`,
      labels: { environment: 'demo', service: 'storefront' },
      lifecycle_status: 'active',
      desired_state: { hostname, release: START_RELEASE, traffic: 'in' },
      observed_state: { hostname, base_url, release: START_RELEASE, traffic: 'in' },
      relationships: [
        { type_key: 'member_of', target_id: `${region}-web-pool` },
        { type_key: 'depends_on', target_id: `${region}-session-store` },
      ],
    },
    { record_only: true },
  )
}
