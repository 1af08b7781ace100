import semver from 'semver'
import { readCapabilities, readLoadNo, readRelationshipTypes, readTypes } from '../../../db/catalog/types.ts'
import type { Queryable } from '../../../db/client.ts'
import type { Capability, RelationshipType, ResourceType } from '../../shared/contracts/catalog/types.ts'
import { isTerminal } from '../document/lifecycle.ts'

export type StoredType = ResourceType & { id: number; retired: boolean }
export type StoredRelationshipType = RelationshipType & { id: number }
export type StoredCapability = Capability & { id: number }

/** The topology chain by level (catalog.md 4). */
export const LEVELS = {
  region_id: 'topology.region',
  datacenter_id: 'topology.datacenter',
  layer_id: 'topology.layer',
  segment_id: 'topology.segment',
} as const
export type Level = keyof typeof LEVELS

/** All types in memory, with the lookups that rules and queries need. Immutable: a load creates a new one. */
const createTypes = (
  types: readonly StoredType[],
  relationship_types: readonly StoredRelationshipType[],
  capabilities: readonly StoredCapability[],
) => {
  const newest = new Map<string, StoredType>()
  const byId = new Map<number, StoredType>()
  const byVersion = new Map<string, StoredType>()
  const ended = new Set<string>()
  for (const type of [...types].sort((a, b) => a.version - b.version)) {
    newest.set(type.type_key, type)
    byId.set(type.id, type)
    byVersion.set(`${type.id}@${type.version}`, type)
    for (const state of type.lifecycle.states) {
      const known = `${type.id} ${state}`
      if (isTerminal(type.lifecycle, state)) ended.add(known)
      else ended.delete(known)
    }
  }
  const relationByKey = new Map(relationship_types.map((type) => [type.type_key, type]))
  const relationById = new Map(relationship_types.map((type) => [type.id, type]))
  const isA = (type_key: string, base: string): boolean =>
    type_key === base || (newest.get(type_key)?.ancestors.includes(base) ?? false)
  const idsOf = (bases: readonly string[]): number[] =>
    [...newest.values()].filter(({ type_key }) => bases.some((base) => isA(type_key, base))).map(({ id }) => id)
  const levelIds = Object.fromEntries(
    Object.entries(LEVELS).map(([level, key]) => [level, new Set(idsOf([key]))]),
  ) as unknown as Record<Level, ReadonlySet<number>>

  const versionsOf = (capability_key: string): StoredCapability[] =>
    capabilities
      .filter((item) => item.capability_key === capability_key)
      .sort((a, b) => semver.rcompare(a.version, b.version))

  return {
    /** The newest version of each type. */
    all: [...newest.values()].sort((a, b) => (a.type_key < b.type_key ? -1 : 1)),
    newest: (type_key: string) => newest.get(type_key),
    version: (id: number, version: number) => byVersion.get(`${id}@${version}`),
    byId: (id: number) => byId.get(id),
    /**
     * States that end a resource, as `<type id> <state>`: the newest version that has a state decides. A past document
     * follows its own version (`hasEnded`).
     */
    ended: ended as ReadonlySet<string>,
    keyOf: (id: number): string => byId.get(id)?.type_key ?? 'unknown.type',
    isA,
    /** Ids of these types and of all types derived from them. */
    idsOf,
    relationships: [...relationship_types].sort((a, b) => (a.type_key < b.type_key ? -1 : 1)),
    relationship: (type_key: string) => relationByKey.get(type_key),
    relationshipById: (id: number) => relationById.get(id),
    /** The definition to which a provider's own version belongs, within a range. */
    capability: (capability_key: string, version: string, range = '*') =>
      capabilities.find(
        (item) =>
          item.capability_key === capability_key && item.version === version && semver.satisfies(version, range),
      ),
    /** The newest version of each capability. */
    capabilities: [...new Set(capabilities.map(({ capability_key }) => capability_key))]
      .sort()
      .map((capability_key) => versionsOf(capability_key)[0] as StoredCapability),
    /** All versions of a capability, newest first. */
    capabilityVersions: versionsOf,
    hasCapability: (capability_key: string) => capabilities.some((item) => item.capability_key === capability_key),
    levelOf: (type_id: number): Level | undefined =>
      (Object.keys(levelIds) as Level[]).find((level) => levelIds[level].has(type_id)),
    levelIds,
    steps: createSteps(),
    topologyIds: Object.values(levelIds).flatMap((ids) => [...ids]),
  }
}
export type Types = ReturnType<typeof createTypes>

const MAX_STEPS = 50_000

/** The steps of resource paths, by row number, as long as these types are in force; evicts the oldest first. */
const createSteps = () => {
  const known = new Map<string, Step>()
  return {
    get: (rid: string) => known.get(rid),
    set: (rid: string, step: Step): void => {
      if (known.size >= MAX_STEPS) known.delete(known.keys().next().value as string)
      known.set(rid, step)
    },
  }
}
/** `level` is set for a topology type. */
type Step = { resource_id: string; level: Level | undefined }

const POLL_MS = 5000

/** The types of this process; polls for a newer load in the background, so that a rolling deployment serves both. */
export const createRegistry = async (db: Queryable, onError: (error: unknown) => void) => {
  let load = -1
  let types: Types
  const read = async () => {
    const now = await readLoadNo(db)
    if (now === load) return
    const [rows, relations, capabilities] = [
      await readTypes(db),
      await readRelationshipTypes(db),
      await readCapabilities(db),
    ]
    types = createTypes(
      rows.map(({ id, retired, document }) => ({ ...document, id, retired })),
      relations.map(({ id, document }) => ({ ...document, id })),
      capabilities.map(({ id, document }) => ({ ...document, id })),
    )
    load = now
  }
  await read()
  const timer = setInterval(() => void read().catch(onError), POLL_MS).unref()
  return {
    get types(): Types {
      return types
    },
    reload: read,
    close: () => clearInterval(timer),
  }
}
export type Registry = Awaited<ReturnType<typeof createRegistry>>
