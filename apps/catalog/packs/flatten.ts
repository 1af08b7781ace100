import type { Capability, RelationshipType, ResourceType } from '../../shared/contracts/catalog/types.ts'
import { digest } from '../../shared/data/digest.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { commonLeaves } from '../document/common.ts'
import { type Lifecycle, PRESETS } from '../document/lifecycle.ts'
import { isObject, type Json, type JsonObject } from '../document/pointers.ts'
import type { CapabilityEntry, PackFile, RelationshipTypeEntry, TypeEntry } from './format.ts'

/** A base and a derived type define one key differently. */
export class FlattenError extends Error {}

const SCHEMA_MAPS = ['properties', '$defs'] as const

/**
 * Unites the schemas of a base and a derived type: properties and required together, closed if either is. It does not
 * use `allOf`: a closed base would refuse every property that the derived type adds.
 */
const uniteSchemas = (base: JsonObject, own: JsonObject): JsonObject => {
  const united: JsonObject = { ...base, ...own }
  for (const name of SCHEMA_MAPS) {
    if (!base[name] && !own[name]) continue
    const [a, b] = [isObject(base[name]) ? base[name] : {}, isObject(own[name]) ? own[name] : {}]
    for (const key of Object.keys(b)) {
      if (Object.hasOwn(a, key) && !equalJson(a[key], b[key])) throw new FlattenError(`${name}/${key}`)
    }
    united[name] = { ...a, ...b }
  }
  const required = [...new Set([...texts(base.required), ...texts(own.required)])]
  if (required.length > 0) united.required = required
  if (base.additionalProperties === false || own.additionalProperties === false) united.additionalProperties = false
  return united
}

const texts = (value: Json | undefined): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

const lifecycleOf = (entry: TypeEntry): Lifecycle | undefined =>
  typeof entry.lifecycle === 'string' ? PRESETS[entry.lifecycle] : entry.lifecycle

/** Later entries replace earlier ones with the same key: the derived type wins. */
const unite = <T>(base: readonly T[], own: readonly T[], keyOf: (item: T) => string): T[] => [
  ...new Map([...base, ...own].map((item) => [keyOf(item), item])).values(),
]
const together = (base: readonly string[], own: readonly string[] | undefined): string[] => [
  ...new Set([...base, ...(own ?? [])]),
]

/** A type with everything that it inherits from its (already flattened) base. The checksum covers all of it. */
export const flattenType = (entry: TypeEntry, base: ResourceType | undefined, pack: PackFile): ResourceType => {
  const lifecycle = lifecycleOf(entry) ?? base?.lifecycle ?? PRESETS.record
  const desired = uniteSchemas(
    (base?.desired_state_schema ?? { type: 'object' }) as JsonObject,
    (entry.desired_state_schema ?? {}) as JsonObject,
  )
  const observed = uniteSchemas(
    (base?.observed_state_schema ?? { type: 'object' }) as JsonObject,
    (entry.observed_state_schema ?? {}) as JsonObject,
  )
  const inheritedDrift = base && base.drift_paths.length > 0 ? base.drift_paths : commonLeaves(desired, observed)
  const icon = entry.icon ?? base?.icon
  const metrics = unite(base?.health.metrics ?? [], entry.health?.metrics ?? [], (metric) => metric.key)
  const type = {
    type_key: entry.type_key,
    version: entry.version,
    title: entry.title,
    ...(icon !== undefined && { icon }),
    abstract: entry.abstract ?? false,
    derived_from: entry.derived_from ?? null,
    ancestors: base ? [base.type_key, ...base.ancestors] : [],
    status: entry.status ?? 'active',
    writes: entry.writes ?? base?.writes ?? 'record',
    lifecycle,
    desired_state_schema: desired,
    observed_state_schema: observed,
    field_classes: {
      immutable: together(base?.field_classes.immutable ?? [], entry.field_classes?.immutable),
      read_only: together(base?.field_classes.read_only ?? [], entry.field_classes?.read_only),
      sensitive: together(base?.field_classes.sensitive ?? [], entry.field_classes?.sensitive),
    },
    identity: entry.identity ?? base?.identity ?? [],
    drift_paths: entry.drift_paths ?? inheritedDrift,
    indexed_paths: together(base?.indexed_paths ?? [], entry.indexed_paths),
    relationships: unite(
      base?.relationships ?? [],
      (entry.relationships ?? []).map((rule) => ({ ...rule, min: rule.min ?? 0, max: rule.max ?? null })),
      (rule) => `${rule.direction} ${rule.type_key}`,
    ),
    provides: unite(base?.provides ?? [], entry.provides ?? [], (item) => item.capability_key),
    requires: unite(
      base?.requires ?? [],
      (entry.requires ?? []).map((item) => ({ ...item, min: item.min ?? 1, scope: item.scope ?? ('any' as const) })),
      (item) => item.requirement_key,
    ),
    actions: unite(
      base?.actions ?? [],
      (entry.actions ?? []).map((action) => ({
        ...action,
        intent_kind: action.intent_kind ?? 'action',
        allowed_in: action.allowed_in ?? lifecycle.states.filter((state) => !lifecycle.terminal.includes(state)),
        risk: action.risk ?? ('medium' as const),
        input_schema: action.input_schema ?? { type: 'object', additionalProperties: false },
      })),
      (action) => action.action_key,
    ),
    health: {
      default_ttl_s: entry.health?.default_ttl_s ?? base?.health.default_ttl_s ?? null,
      // Absent if there are none: the checksums of types without metrics stay as they are.
      ...(metrics.length > 0 && { metrics }),
    },
  }
  return { ...type, pack: pack.pack, pack_version: pack.version, checksum: digest(type) }
}

export const completeRelationshipType = (entry: RelationshipTypeEntry, pack: PackFile): RelationshipType => {
  const type = {
    type_key: entry.type_key,
    inverse_key: entry.inverse_key,
    from: entry.from,
    to: entry.to,
    from_max: entry.from_max ?? null,
    to_max: entry.to_max ?? null,
    symmetric: entry.symmetric ?? false,
    acyclic: entry.acyclic ?? false,
    containment: entry.containment ?? false,
    on_delete: entry.on_delete,
    properties_schema: entry.properties_schema ?? { type: 'object', additionalProperties: false },
    health: {
      flows: entry.health?.flows ?? ('none' as const),
      mode: entry.health?.mode ?? ('worst' as const),
      k: entry.health?.k ?? 1,
      cap: entry.health?.cap ?? null,
    },
  }
  return { ...type, pack: pack.pack, checksum: digest(type) }
}

export const completeCapability = (entry: CapabilityEntry, pack: PackFile): Capability => {
  const capability = {
    capability_key: entry.capability_key,
    version: entry.version,
    title: entry.title,
    category: entry.category,
    status: entry.status ?? ('active' as const),
    sharing: entry.sharing,
    unit: entry.unit ?? null,
    attributes_schema: entry.attributes_schema ?? { type: 'object', additionalProperties: false },
    match_rules: entry.match_rules ?? {},
  }
  return { ...capability, pack: pack.pack, checksum: digest(capability) }
}
