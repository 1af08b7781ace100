import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import type { Collected } from '../collect.ts'
import { type Container, type Fields, fieldsOf, labelOf, marksOf, some, textOf } from '../items.ts'
import type { Manifest } from '../manifest.ts'
import { withObserved, withRest } from '../rest.ts'

/** Everything that rules consult besides their object. */
export type Place = {
  found: Collected
  source: string
  cluster: string
  into: Container | undefined
  all: readonly Manifest[]
}
export type Rule = (manifest: Manifest, place: Place) => void

export const idOf = ({ source }: Place, kind: string, namespace: string, name: string) =>
  `${source}/${kind}/${namespace}/${name}`

/** The members that all objects of a cluster share. Kubernetes names are unique per namespace, ours per cluster. */
export const baseOf = (manifest: Manifest, place: Place) => {
  const { kind, name, namespace } = manifest
  const { labels, annotations } = marksOf(fieldsOf(manifest.metadata).labels, `${PREFIX}labels`)
  const { [APPLIED]: _, ...notes } = fieldsOf(fieldsOf(manifest.metadata).annotations)
  const { labels: as_labels, annotations: as_notes } = marksOf(notes, `${PREFIX}annotations`)
  const all = { ...as_labels, ...as_notes, ...annotations }
  return {
    external_id: idOf(place, kind, namespace, name),
    name: namespace === 'default' ? name : `${namespace}/${name}`,
    labels: { ...labels, 'kubernetes.io/namespace': labelOf(namespace), 'kubernetes.io/kind': labelOf(kind) },
    ...(Object.keys(all).length > 0 && { annotations: all }),
  }
}

const PREFIX = 'kubernetes.io/'
/** A copy of the manifest that kubectl leaves in the object. */
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const SET_BY_CLUSTER = ['managedFields', 'resourceVersion', 'selfLink', 'generation', 'creationTimestamp', 'uid']
/** Members that name secrets but do not hold them. */
const NAMES_SECRET =
  /^(secrets?|.*secret(Name|Ref|KeyRef|Namespace)s?|imagePullSecrets|automountServiceAccountToken|tokenRequests)$/i

/** Adds the item with the whole manifest: in attributes, or in annotations if the type has no attributes. */
export const addWith = (item: ImportItem, manifest: Manifest, { found }: Place): void => {
  const { kind, name: _, namespace: _ns, generated: _g, apiVersion, metadata, status, ...members } = manifest
  const { name: _n, namespace: _s, labels: _l, annotations, ...meta } = fieldsOf(metadata)
  const note = (field: string, reason: string) => found.ledger.field('computed', kind, field, reason, item.external_id)
  if (APPLIED in fieldsOf(annotations)) note(`metadata.annotations.${APPLIED}`, 'it repeats the manifest')
  for (const field of SET_BY_CLUSTER) {
    if (field in meta) note(`metadata.${field}`, 'the cluster sets it')
    delete meta[field]
  }
  const typed = item.type_key.startsWith('k8s.')
  const open = typed || item.type_key === 'infra.generic'
  const fields: Fields = {
    ...(!typed && { 'api-version': apiVersion }),
    metadata: meta,
    ...members,
    ...(!typed && { status }),
  }
  const rest = { ledger: found.ledger, kind, prefix: PREFIX, open, plain: NAMES_SECRET }
  const stated = typed ? withObserved(item, { status }, rest) : item
  found.add(withRest(stated, fields, rest))
}

/** Types of the pack `k8s`, by kind; all other kinds are generic. */
export const TYPES: Record<string, string> = {
  Namespace: 'k8s.namespace',
  Pod: 'k8s.pod',
  Job: 'k8s.job',
  CronJob: 'k8s.cron_job',
  ConfigMap: 'k8s.config_map',
  Ingress: 'k8s.ingress',
  HTTPRoute: 'k8s.ingress',
  GRPCRoute: 'k8s.ingress',
  ServiceAccount: 'k8s.service_account',
  Role: 'k8s.role',
  ClusterRole: 'k8s.role',
  RoleBinding: 'k8s.role_binding',
  ClusterRoleBinding: 'k8s.role_binding',
  NetworkPolicy: 'k8s.network_policy',
  StorageClass: 'k8s.storage_class',
  HorizontalPodAutoscaler: 'k8s.autoscaler',
  VerticalPodAutoscaler: 'k8s.autoscaler',
  PodDisruptionBudget: 'k8s.disruption_budget',
  CustomResourceDefinition: 'k8s.definition',
}

/** An object whose kind has no rule: one of the pack's types, or generic, with its whole manifest. */
export const object: Rule = (manifest, place) => {
  const base = baseOf(manifest, place)
  const { kind, namespace, apiVersion, spec } = manifest
  const type_key = TYPES[kind]
  const typed = () => ({
    type_key: type_key ?? '',
    desired_state: some({
      api_version: textOf(apiVersion)?.slice(0, 128),
      kind: kind.slice(0, 63),
      namespace: namespace.slice(0, 63),
      schedule: kind === 'CronJob' ? textOf(fieldsOf(spec).schedule)?.slice(0, 128) : undefined,
    }),
  })
  const made = type_key === undefined ? place.found.generic('kubernetes', kind) : typed()
  const name = type_key === undefined ? base.external_id.slice(-253) : base.name
  addWith({ ...base, ...made, name, parent_external_id: place.cluster }, manifest, place)
}
