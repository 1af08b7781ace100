import {
  type Collected,
  type Container,
  collect,
  fieldsOf,
  labelOf,
  listOf,
  marksOf,
  positiveOf,
  type Reader,
  some,
  textOf,
  wholeOf,
} from './items.ts'
import { containersOf, hostsIn, type Manifest, manifestsOf, portOf, releaseOf, selects, specOf } from './manifest.ts'
import { placeOf } from './places.ts'

type Place = {
  found: Collected
  source: string
  cluster: string
  into: Container | undefined
  all: readonly Manifest[]
}
type Rule = (manifest: Manifest, place: Place) => void

/** A cluster's objects: the file is the cluster, what runs in it goes below (catalog.md 13). Secrets are never read. */
export const readKubernetes: Reader = (documents, { source, into }) => {
  const all = manifestsOf(documents)
  const found = collect()
  const cluster = `cluster/${source}`
  const place = { found, source, cluster, into, all }
  if (all.some((one) => !LEFT_OUT.has(one.kind) && !one.generated && one.kind !== 'Node'))
    found.add({
      external_id: cluster,
      type_key: 'infra.cluster',
      name: source,
      lifecycle_status: 'active',
      desired_state: { kind: 'kubernetes' },
      ...(into !== undefined && { parent_id: into.resource_id }),
    })
  for (const manifest of all) {
    found.from(manifest.kind, manifest)
    if (LEFT_OUT.has(manifest.kind)) found.skip(manifest.kind)
    else if (manifest.generated) found.skip(`${manifest.kind} without a name of its own`)
    else (RULES[manifest.kind] ?? other)(manifest, place)
  }
  return found.done()
}

const idOf = ({ source }: Place, kind: string, namespace: string, name: string) =>
  `${source}/${kind}/${namespace}/${name}`

/** What all objects of a cluster share. Names are unique in a namespace only, and ours in the cluster. */
const baseOf = (manifest: Manifest, place: Place) => {
  const { kind, name, namespace } = manifest
  const { labels, annotations } = marksOf(fieldsOf(manifest.metadata).labels)
  return {
    external_id: idOf(place, kind, namespace, name),
    name: namespace === 'default' ? name : `${namespace}/${name}`,
    labels: { ...labels, 'kubernetes.io/namespace': labelOf(namespace), 'kubernetes.io/kind': labelOf(kind) },
    ...(annotations && { annotations }),
  }
}

const workload: Rule = (manifest, place) => {
  const image = textOf(containersOf(manifest)[0]?.image)
  if (image === undefined) {
    place.found.note(`${manifest.kind} ${manifest.namespace}/${manifest.name} has no container image and is left out`)
    return place.found.skip(`${manifest.kind} without image`)
  }
  const services = place.all.filter(({ kind }) => kind === 'Service')
  const own = services.filter((service) => selects(service, manifest))
  const called = hostsIn(manifest, () => true).flatMap(({ host, namespace }) =>
    services.filter((one) => one.name === host && one.namespace === namespace && !own.includes(one)),
  )
  const edge = (type_key: string) => (service: Manifest) => ({
    type_key,
    target_external_id: idOf(place, 'Service', service.namespace, service.name),
  })
  const { readyReplicas } = fieldsOf(manifest.status)
  const strategy = textOf(fieldsOf(specOf(manifest).strategy).type)
  place.found.add({
    ...baseOf(manifest, place),
    type_key: 'infra.deployment',
    parent_external_id: place.cluster,
    lifecycle_status: 'active',
    desired_state: some({
      release: releaseOf(image),
      image: image.slice(0, 512),
      replicas: wholeOf(specOf(manifest).replicas),
      strategy: strategy === 'RollingUpdate' ? 'rolling' : undefined,
    }),
    ...(wholeOf(readyReplicas) !== undefined && {
      observed_state: { release: releaseOf(image), replicas_ready: wholeOf(readyReplicas) },
    }),
    relationships: [...own.map(edge('member_of')), ...[...new Set(called)].map(edge('depends_on'))].slice(0, 100),
  })
}

const service: Rule = (manifest, place) =>
  place.found.add({
    ...baseOf(manifest, place),
    type_key: 'infra.service',
    parent_external_id: place.cluster,
    desired_state: some({
      port: portOf(manifest),
      protocol: textOf(fieldsOf(listOf(specOf(manifest).ports)[0]).protocol)?.toLowerCase(),
    }),
  })

/** Ingresses and routes: one endpoint for each host, which needs the services behind it. */
const route: Rule = (manifest, place) => {
  const spec = specOf(manifest)
  const rules = listOf(spec.rules).map(fieldsOf)
  const hosts = [...listOf(spec.hostnames), ...rules.map(({ host }) => host)].flatMap((host) => textOf(host) ?? [])
  const tls = listOf(spec.tls).length > 0
  const names = rules.flatMap((rule) => [
    ...listOf(fieldsOf(rule.http).paths).map((path) => fieldsOf(fieldsOf(fieldsOf(path).backend).service).name),
    ...listOf(rule.backendRefs).map((backend) => fieldsOf(backend).name),
  ])
  const relationships = [...new Set(names)]
    .filter((name): name is string => textOf(name) !== undefined)
    .map((name) => ({ type_key: 'depends_on', target_external_id: idOf(place, 'Service', manifest.namespace, name) }))
  const usable = [...new Set(hosts)].filter((host) => /^[A-Za-z0-9.*-]{1,253}$/.test(host))
  if (usable.length === 0) return place.found.skip(`${manifest.kind} without host`)
  const base = baseOf(manifest, place)
  for (const host of usable)
    place.found.add({
      ...base,
      external_id: `${base.external_id}/${host}`,
      name: `${place.source}/${manifest.namespace}/${manifest.name}/${host}`.slice(-253),
      type_key: 'infra.endpoint',
      desired_state: { url: `${tls ? 'https' : 'http'}://${host}/`, kind: manifest.kind },
      relationships,
    })
}

const volume: Rule = (manifest, place) => {
  const spec = specOf(manifest)
  const size = gibOf(
    textOf(fieldsOf(spec.capacity).storage) ?? textOf(fieldsOf(fieldsOf(spec.resources).requests).storage),
  )
  if (size === undefined) return place.found.skip(`${manifest.kind} without size`)
  place.found.add({
    ...baseOf(manifest, place),
    type_key: 'infra.volume',
    parent_external_id: place.cluster,
    lifecycle_status: 'active',
    desired_state: some({ size_gib: size, class: textOf(spec.storageClassName)?.slice(0, 63) }),
  })
}

const UNITS: Record<string, number> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  '': 1,
}
/** A quantity of Kubernetes in GiB, rounded up. */
const gibOf = (quantity: string | undefined): number | undefined => {
  const [, number, unit = ''] = /^(\d{1,12}(?:\.\d{1,6})?)(Ki|Mi|Gi|Ti|k|M|G|T)?$/.exec(quantity ?? '') ?? []
  return number === undefined ? undefined : Math.max(1, Math.ceil((Number(number) * (UNITS[unit] ?? 1)) / 2 ** 30))
}

/** What no rule knows: that it exists in the cluster. */
const other: Rule = (manifest, place) => {
  const base = baseOf(manifest, place)
  place.found.add({
    ...base,
    ...place.found.generic('kubernetes', manifest.kind),
    name: base.external_id.slice(-253),
    parent_external_id: place.cluster,
  })
}

const ZONE = 'topology.kubernetes.io/zone'
const REGION = 'topology.kubernetes.io/region'
/** Nodes stand in the data center that their zone names, or where --into says. */
const node: Rule = (manifest, place) => {
  const labels = fieldsOf(fieldsOf(manifest.metadata).labels)
  const { nodeInfo, capacity } = fieldsOf(manifest.status)
  const at = placeOf(place.found, textOf(labels[REGION]), textOf(labels[ZONE]))
  const { external_id, ...base } = baseOf({ ...manifest, namespace: 'default' }, place)
  place.found.add({
    ...base,
    external_id,
    type_key: 'infra.host',
    lifecycle_status: 'active',
    desired_state: some({
      hostname: manifest.name,
      cpu_cores: positiveOf(fieldsOf(capacity).cpu),
      os: textOf(fieldsOf(nodeInfo).osImage)?.slice(0, 128),
    }),
    observed_state: some({ hostname: manifest.name, os: textOf(fieldsOf(nodeInfo).osImage)?.slice(0, 128) }),
    ...(at !== undefined
      ? { parent_external_id: at }
      : place.into !== undefined && { parent_id: place.into.resource_id }),
  })
}

/** A namespace is a label, a secret is not read, and the rest the cluster makes of other objects by itself. */
const LEFT_OUT = new Set([
  'Namespace',
  'Secret',
  'Event',
  'Pod',
  'ReplicaSet',
  'ControllerRevision',
  'Endpoints',
  'EndpointSlice',
  'Lease',
])

const RULES: Record<string, Rule> = {
  Deployment: workload,
  StatefulSet: workload,
  DaemonSet: workload,
  Service: service,
  Ingress: route,
  HTTPRoute: route,
  GRPCRoute: route,
  PersistentVolume: volume,
  PersistentVolumeClaim: volume,
  Node: node,
}
