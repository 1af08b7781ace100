import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { fieldsOf, positiveOf, some, textOf } from '../items.ts'
import { specOf } from '../manifest.ts'
import { placeOf } from '../places.ts'
import { addWith, baseOf, object, type Rule } from './object.ts'

export const volume: Rule = (manifest, place) => {
  const spec = specOf(manifest)
  const size = gibOf(
    textOf(fieldsOf(spec.capacity).storage) ?? textOf(fieldsOf(fieldsOf(spec.resources).requests).storage),
  )
  if (size === undefined) return object(manifest, place)
  const item: ImportItem = {
    ...baseOf(manifest, place),
    type_key: 'infra.volume',
    parent_external_id: place.cluster,
    lifecycle_status: 'active',
    desired_state: some({ size_gib: size, class: textOf(spec.storageClassName)?.slice(0, 63) }),
  }
  addWith(item, manifest, place)
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
/** Converts a Kubernetes quantity to GiB, rounded up. */
const gibOf = (quantity: string | undefined): number | undefined => {
  const [, number, unit = ''] = /^(\d{1,12}(?:\.\d{1,6})?)(Ki|Mi|Gi|Ti|k|M|G|T)?$/.exec(quantity ?? '') ?? []
  return number === undefined ? undefined : Math.max(1, Math.ceil((Number(number) * (UNITS[unit] ?? 1)) / 2 ** 30))
}

const ZONE = 'topology.kubernetes.io/zone'
const REGION = 'topology.kubernetes.io/region'
/** Puts nodes into the data center of their zone, or below --into. */
export const node: Rule = (manifest, place) => {
  const labels = fieldsOf(fieldsOf(manifest.metadata).labels)
  const { nodeInfo, capacity } = fieldsOf(manifest.status)
  const at = placeOf(place.found, textOf(labels[REGION]), textOf(labels[ZONE]))
  const { external_id, ...base } = baseOf({ ...manifest, namespace: 'default' }, place)
  const item: ImportItem = {
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
  }
  addWith(item, manifest, place)
}
