import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { collect } from '../collect.ts'
import { fieldsOf, isFields, listOf, type Reader, some, textOf, wholeOf } from '../items.ts'
import { containersOf, hostsIn, type Manifest, manifestsOf, portOf, releaseOf, selects, specOf } from '../manifest.ts'
import { node, volume } from './nodes.ts'
import { addWith, baseOf, idOf, object, type Place, type Rule, TYPES } from './object.ts'

/** Reads a cluster's objects: the file is the cluster, they are below it (catalog.md 13). Never reads Secrets. */
export const readKubernetes: Reader = (documents, { source, into }) => {
  const found = collect()
  const all = distinct(manifestsOf(documents), found.note)
  const cluster = `cluster/${source}`
  const place = { found, source, cluster, into, all }
  if (all.some((one) => leftOut(one) === undefined && one.kind !== 'Node'))
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
    const reason = leftOut(manifest)
    if (reason === undefined) (RULES[manifest.kind] ?? object)(manifest, place)
    else found.skip(manifest.kind, reason)
  }
  return found.done()
}

/** The groups whose kinds our rules and types mean. */
const OWN_GROUP = /^(|apps|batch|extensions|policy|autoscaling|.*\.k8s\.io)$/
const groupOf = ({ apiVersion }: Manifest): string => /^(.*)\//.exec(textOf(apiVersion) ?? '')?.[1] ?? ''

/**
 * Names a kind with its group where its name alone means another kind, such as Knative's Service, or another object of
 * the file has the same. The others keep the ids that they had, and workloads are known by their form in any group.
 */
const distinct = (all: Manifest[], note: (text: string) => void): Manifest[] => {
  const keyOf = ({ kind, namespace, name }: Manifest) => JSON.stringify([kind, namespace, name])
  const alike = Map.groupBy(all, keyOf)
  const isKnown = (kind: string) => (kind in RULES || kind in TYPES) && RULES[kind] !== workload
  return all.map((one) => {
    const group = groupOf(one)
    const known = isKnown(one.kind)
    const means_other = known || alike.get(keyOf(one))?.some((other) => groupOf(other) !== group)
    if (OWN_GROUP.test(group) || one.kind === 'Secret' || !means_other) return one
    if (!known) note(`${one.kind}.${group} ${one.name} is named by its group, as its namesake is in the file too.`)
    return { ...one, kind: `${one.kind}.${group}` }
  })
}

const workload: Rule = (manifest, place) => {
  const image = textOf(containersOf(manifest)[0]?.image)
  if (image === undefined) return object(manifest, place)
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
  const used = usedIn(manifest, place)
  const item: ImportItem = {
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
    relationships: [...own.map(edge('member_of')), ...[...new Set(called)].map(edge('depends_on')), ...used],
  }
  addWith(item, manifest, place)
}

/** The config maps and claims in the file that a workload's pods use. */
const usedIn = (manifest: Manifest, place: Place) => {
  const names = new Set<string>()
  const look = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) look(one)
    if (!isFields(value)) return
    for (const [key, inner] of Object.entries(value)) {
      const of = /^configMap(Ref|KeyRef)?$/.test(key)
        ? 'ConfigMap'
        : key === 'persistentVolumeClaim'
          ? 'PersistentVolumeClaim'
          : ''
      const name = of === 'ConfigMap' ? fieldsOf(inner).name : fieldsOf(inner).claimName
      if (of !== '' && typeof name === 'string') names.add(idOf(place, of, manifest.namespace, name))
      look(inner)
    }
  }
  look(specOf(manifest))
  const there = new Set(place.all.map(({ kind, namespace, name }) => idOf(place, kind, namespace, name)))
  return [...names]
    .filter((id) => there.has(id))
    .map((target_external_id) => ({ type_key: 'depends_on', target_external_id }))
}

const service: Rule = (manifest, place) => {
  const item: ImportItem = {
    ...baseOf(manifest, place),
    type_key: 'infra.service',
    parent_external_id: place.cluster,
    desired_state: some({
      port: portOf(manifest),
      protocol: textOf(fieldsOf(listOf(specOf(manifest).ports)[0]).protocol)?.toLowerCase(),
    }),
  }
  addWith(item, manifest, place)
}

/** Ingresses and routes, with one endpoint per host, which depends on the services behind it. */
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
    .filter(({ target_external_id: id }) =>
      place.all.some((one) => one.kind === 'Service' && idOf(place, one.kind, one.namespace, one.name) === id),
    )
  object(manifest, place)
  const usable = [...new Set(hosts)].filter((host) => /^[A-Za-z0-9.*-]{1,253}$/.test(host))
  const base = baseOf(manifest, place)
  for (const host of usable)
    place.found.add({
      ...base,
      external_id: `${base.external_id}/${host}`,
      name: `${place.source}/${manifest.namespace}/${manifest.name}/${host}`.slice(-253),
      type_key: 'infra.endpoint',
      desired_state: { url: `${tls ? 'https' : 'http'}://${host}/`, kind: manifest.kind },
      relationships: [...relationships, { type_key: 'refers_to', target_external_id: base.external_id }],
    })
}

const BY_CLUSTER = new Set(['Event', 'ControllerRevision', 'Endpoints', 'EndpointSlice', 'Lease'])
/** Why an object becomes no item; `undefined` if it becomes one. */
const leftOut = ({ kind, generated, metadata }: Manifest): string | undefined => {
  if (kind === 'Secret') return 'secret values are never read'
  if (generated) return 'it has no fixed name: the cluster generates one at each creation'
  if (BY_CLUSTER.has(kind)) return 'the cluster creates it'
  const owned = listOf(fieldsOf(metadata).ownerReferences).some((owner) => fieldsOf(owner).controller === true)
  return owned && /^(Pod|ReplicaSet|Job)(\.|$)/.test(kind) ? 'another object of the cluster creates it' : undefined
}

const RULES: Record<string, Rule> = {
  Deployment: workload,
  StatefulSet: workload,
  DaemonSet: workload,
  ReplicaSet: workload,
  ReplicationController: workload,
  Service: service,
  Ingress: route,
  HTTPRoute: route,
  GRPCRoute: route,
  PersistentVolume: volume,
  PersistentVolumeClaim: volume,
  Node: node,
}
