import semver from 'semver'
import type { Capability, RelationshipType, ResourceType } from '../../shared/contracts/catalog/types.ts'
import { completeCapability, completeRelationshipType, FlattenError, flattenType } from './flatten.ts'
import { lifecycleFaults } from './lifecycle.ts'
import type { CapabilityEntry, PackFile, TypeEntry } from './pack-format.ts'
import { isObject, type JsonObject } from './pointers.ts'
import { foreignRefs, schemaAt, validatorOf } from './schemas.ts'

/** Everything that the packs of a deployment define, flattened. */
export type TypeModel = {
  packs: { pack: string; version: string; title: string }[]
  types: ResourceType[]
  relationship_types: RelationshipType[]
  capabilities: Capability[]
}

/** One broken rule: where (a path into one pack), which rule, what is wrong and what to do. */
export type Fault = { pack: number; path: (string | number)[]; rule: string; message: string; fix: string }
type Report = (path: Fault['path'], rule: string, message: string, fix: string) => void

const MAX_SCHEMA_BYTES = 65_536

/**
 * Checks packs that have the right shape against each other (catalog.md 2, "Loading") and builds the model. Faults are
 * found in the order of the rules; the model is complete only when there are none.
 */
export const buildModel = (packs: readonly PackFile[]): { model: TypeModel; faults: Fault[] } => {
  const faults: Fault[] = []
  const reportIn =
    (pack: number): Report =>
    (path, rule, message, fix) =>
      faults.push({ pack, path, rule, message, fix })

  const model: TypeModel = {
    packs: packs.map(({ pack, version, title }) => ({ pack, version, title })),
    types: [],
    relationship_types: [],
    capabilities: [],
  }
  packs.forEach((pack, n) => checkRequires(packs, pack, n, reportIn(n)))
  checkUnique(packs, reportIn)
  flattenAll(packs, model, reportIn)
  packs.forEach((pack, n) => {
    checkRelationshipTypes(pack, n, model, reportIn(n))
    checkCapabilities(pack, n, reportIn(n))
    ;(pack.types ?? []).forEach((entry, i) => {
      const type = model.types.find(({ type_key }) => type_key === entry.type_key)
      if (type) checkType(entry, type, model, (path, ...rest) => reportIn(n)(['types', i, ...path], ...rest))
    })
  })
  return { model, faults }
}

const checkRequires = (packs: readonly PackFile[], pack: PackFile, n: number, report: Report) => {
  for (const [name, range] of Object.entries(pack.requires ?? {})) {
    const other = packs.find((candidate) => candidate.pack === name)
    if (semver.validRange(range) === null)
      report(['requires', name], 'range', `"${range}" is not a version range`, 'Write it as npm does, such as ^1.0.0.')
    else if (!other)
      report(['requires', name], 'requires', `pack ${name} is not there`, 'Add its folder to CATALOG__PACKS__DIRS.')
    else if (!semver.satisfies(other.version, range))
      report(
        ['requires', name],
        'requires',
        `pack ${name} is ${other.version}, not ${range}`,
        'Use a version in that range.',
      )
  }
  if (packs.findIndex((candidate) => candidate.pack === pack.pack) !== n)
    report(['pack'], 'unique', `pack ${pack.pack} is there twice`, 'Rename one of them.')
}

const checkUnique = (packs: readonly PackFile[], reportIn: (pack: number) => Report) => {
  const seen = new Map<string, string>()
  const once = (n: number, path: Fault['path'], name: string) => {
    const other = seen.get(name)
    if (other) reportIn(n)(path, 'unique', `${name} is defined in ${other} already`, 'Give it another key.')
    else seen.set(name, packs[n]?.pack ?? '')
  }
  packs.forEach((pack, n) => {
    ;(pack.relationship_types ?? []).forEach((item, i) =>
      once(n, ['relationship_types', i, 'type_key'], `relationship type ${item.type_key}`),
    )
    ;(pack.capabilities ?? []).forEach((item, i) =>
      once(n, ['capabilities', i, 'capability_key'], `capability ${item.capability_key} ${item.version}`),
    )
    ;(pack.types ?? []).forEach((item, i) => once(n, ['types', i, 'type_key'], `type ${item.type_key}`))
  })
}

type Located = { entry: TypeEntry; pack: PackFile; n: number; i: number }

const flattenAll = (packs: readonly PackFile[], model: TypeModel, reportIn: (pack: number) => Report) => {
  const entries = new Map<string, Located>()
  packs.forEach((pack, n) =>
    (pack.types ?? []).forEach((entry, i) => entries.set(entry.type_key, { entry, pack, n, i })),
  )
  const done = new Map<string, ResourceType | undefined>()

  const flatten = (key: string, way: readonly string[]): ResourceType | undefined => {
    if (done.has(key)) return done.get(key)
    const { entry, pack, n, i } = entries.get(key) as Located
    const report = reportIn(n)
    const at: Fault['path'] = ['types', i, 'derived_from']
    const base = entry.derived_from
    done.set(key, undefined)
    if (base === undefined && key !== 'core.resource') {
      report(
        ['types', i],
        'derived_from',
        `${key} derives from nothing`,
        'Derive it from core.resource or one of its types.',
      )
      return undefined
    }
    if (base !== undefined && !entries.has(base)) {
      report(
        at,
        'derived_from',
        `${key} derives from ${base}, which is not defined`,
        'Name a type of this pack or of one that it requires.',
      )
      return undefined
    }
    if (base !== undefined && (way.includes(base) || base === key)) {
      report(at, 'derived_from', `${[...way, key, base].join(' > ')} is a cycle`, 'Break the cycle.')
      return undefined
    }
    try {
      const parent = base === undefined ? undefined : flatten(base, [...way, key])
      if (base !== undefined && !parent) return undefined
      const type = flattenType(entry, parent, pack)
      done.set(key, type)
      return type
    } catch (error) {
      if (!(error instanceof FlattenError)) throw error
      report(
        ['types', i, 'desired_state_schema'],
        'derived_from',
        `${key} and its base say different things of ${error.message}`,
        'Make both identical, or leave it out here.',
      )
      return undefined
    }
  }
  for (const key of entries.keys()) flatten(key, [])
  model.types = [...done.values()].filter((type) => type !== undefined)
  packs.forEach((pack) => {
    model.relationship_types.push(
      ...(pack.relationship_types ?? []).map((entry) => completeRelationshipType(entry, pack)),
    )
    model.capabilities.push(...(pack.capabilities ?? []).map((entry) => completeCapability(entry, pack)))
  })
}

const checkSchema = (schema: object | undefined, path: Fault['path'], report: Report) => {
  if (schema === undefined) return
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_SCHEMA_BYTES)
    report(path, 'schema', 'is larger than 64 KiB', 'Split the type.')
  const foreign = foreignRefs(schema)
  if (foreign.length > 0)
    return report(path, 'schema', `refers to ${foreign[0]}`, 'Only local references (#/…) are allowed.')
  try {
    validatorOf(schema)
  } catch (error) {
    report(
      path,
      'schema',
      `does not compile: ${(error as Error).message}`,
      'Write it as JSON Schema 2020-12; unknown keywords are refused.',
    )
  }
}

const checkRelationshipTypes = (pack: PackFile, _n: number, model: TypeModel, report: Report) => {
  ;(pack.relationship_types ?? []).forEach((entry, i) => {
    const at = (...path: Fault['path']) => ['relationship_types', i, ...path]
    for (const end of ['from', 'to'] as const) {
      entry[end].forEach((key, k) => {
        if (!model.types.some(({ type_key }) => type_key === key))
          report(at(end, k), 'reference', `type ${key} is not defined`, 'Name a defined type.')
      })
    }
    if (entry.containment && entry.type_key !== 'contained_in')
      report(at('containment'), 'containment', 'only contained_in contains', 'Remove containment.')
    if (entry.containment && !(entry.acyclic && entry.from_max === 1))
      report(at('containment'), 'containment', 'needs acyclic: true and from_max: 1', 'Set both.')
    if (entry.symmetric && entry.acyclic) report(at('symmetric'), 'symmetric', 'cannot be acyclic too', 'Choose one.')
    const { health } = entry
    if (health?.mode === 'quorum' && health.k === undefined)
      report(at('health'), 'health', 'a quorum needs k', 'Give a count, or a share below 1.')
    checkSchema(entry.properties_schema, at('properties_schema'), report)
  })
}

const NUMERIC = new Set(['gte', 'lte'])

const checkCapabilities = (pack: PackFile, _n: number, report: Report) => {
  ;(pack.capabilities ?? []).forEach((entry: CapabilityEntry, i) => {
    const at = (...path: Fault['path']) => ['capabilities', i, ...path]
    checkSchema(entry.attributes_schema, at('attributes_schema'), report)
    for (const [attribute, rule] of Object.entries(entry.match_rules ?? {})) {
      const schema = schemaAt((entry.attributes_schema ?? {}) as JsonObject, `/${attribute}`)
      const type = isObject(schema) ? schema.type : undefined
      const wanted = NUMERIC.has(rule)
        ? ['integer', 'number']
        : rule === 'superset'
          ? ['array']
          : rule === 'semver'
            ? ['string']
            : undefined
      if (!isObject(schema))
        report(
          at('match_rules', attribute),
          'match_rules',
          `${attribute} is not an attribute`,
          'Name an attribute of attributes_schema.',
        )
      else if (wanted && !wanted.includes(String(type)))
        report(
          at('match_rules', attribute),
          'match_rules',
          `${rule} needs ${wanted.join(' or ')}`,
          'Change the rule or the attribute.',
        )
    }
    if (entry.sharing === 'counted' && entry.unit === undefined)
      report(at('sharing'), 'unit', 'what is counted needs a unit', 'Add unit.')
  })
}

const checkType = (entry: TypeEntry, type: ResourceType, model: TypeModel, report: Report) => {
  checkSchema(type.desired_state_schema, ['desired_state_schema'], report)
  checkSchema(type.observed_state_schema, ['observed_state_schema'], report)
  checkPointers(entry, type, report)
  if (typeof entry.lifecycle === 'object') {
    for (const fault of lifecycleFaults(entry.lifecycle))
      report(['lifecycle'], 'lifecycle', `it ${fault}`, 'Correct states and transitions.')
  }
  ;(entry.relationships ?? []).forEach((rule, k) => {
    if (!model.relationship_types.some(({ type_key }) => type_key === rule.type_key))
      report(
        ['relationships', k, 'type_key'],
        'reference',
        `relationship type ${rule.type_key} is not defined`,
        'Name a defined one.',
      )
    rule.peer_types.forEach((key, p) => {
      if (!model.types.some(({ type_key }) => type_key === key))
        report(['relationships', k, 'peer_types', p], 'reference', `type ${key} is not defined`, 'Name a defined type.')
    })
    if (typeof rule.max === 'number' && (rule.min ?? 0) > rule.max)
      report(['relationships', k], 'cardinality', `min ${rule.min} is above max ${rule.max}`, 'Correct one of them.')
  })
  checkUses(entry, model, report)
  ;(entry.actions ?? []).forEach((action, k) => {
    checkSchema(action.input_schema, ['actions', k, 'input_schema'], report)
    for (const state of action.allowed_in ?? []) {
      if (!type.lifecycle.states.includes(state))
        report(
          ['actions', k, 'allowed_in'],
          'action',
          `${state} is not a state of ${type.type_key}`,
          'Name states of its lifecycle.',
        )
    }
  })
}

const checkUses = (entry: TypeEntry, model: TypeModel, report: Report) => {
  for (const list of ['provides', 'requires'] as const) {
    ;(entry[list] ?? []).forEach((use, k) => {
      const versions = model.capabilities.filter(({ capability_key }) => capability_key === use.capability_key)
      if (semver.validRange(use.version_range) === null)
        report(
          [list, k, 'version_range'],
          'range',
          `"${use.version_range}" is not a version range`,
          'Write it as npm does, such as ^1.0.0.',
        )
      else if (versions.length === 0)
        report(
          [list, k, 'capability_key'],
          'reference',
          `capability ${use.capability_key} is not defined`,
          'Name a defined one.',
        )
      else if (!versions.some(({ version }) => semver.satisfies(version, use.version_range)))
        report(
          [list, k, 'version_range'],
          'range',
          `no version of ${use.capability_key} is in ${use.version_range}`,
          'Correct the range.',
        )
    })
  }
}

const checkPointers = (entry: TypeEntry, type: ResourceType, report: Report) => {
  const desired = type.desired_state_schema as JsonObject
  const observed = type.observed_state_schema as JsonObject
  const check = (path: Fault['path'], pointer: string, ...schemas: JsonObject[]) => {
    if (schemas.some((schema) => schemaAt(schema, pointer) === undefined))
      report(path, 'pointer', `${pointer} is not in the schema`, 'Name a property that the schema has.')
  }
  for (const name of ['immutable', 'read_only', 'sensitive'] as const) {
    ;(entry.field_classes?.[name] ?? []).forEach((pointer, k) => check(['field_classes', name, k], pointer, desired))
  }
  ;(entry.identity ?? []).forEach((pointer, k) => check(['identity', k], pointer, desired))
  ;(entry.drift_paths ?? []).forEach((pointer, k) => check(['drift_paths', k], pointer, desired, observed))
  ;(entry.indexed_paths ?? []).forEach((pointer, k) => {
    const match = /^\/(desired_state|observed_state)(\/.+)$/.exec(pointer)
    if (!match?.[2])
      report(
        ['indexed_paths', k],
        'pointer',
        `${pointer} names neither desired_state nor observed_state`,
        'Start with /desired_state/ or /observed_state/.',
      )
    else check(['indexed_paths', k], match[2], match[1] === 'desired_state' ? desired : observed)
  })
  for (const pointer of type.field_classes.sensitive) {
    const schema = schemaAt(desired, pointer)
    if (isObject(schema) && schema.type !== 'string')
      report(
        ['field_classes', 'sensitive'],
        'sensitive',
        `${pointer} is not a string`,
        'A sensitive field holds a secret reference: make it a string.',
      )
    const used = [
      ...type.identity,
      ...type.drift_paths,
      ...type.indexed_paths.map((path) => path.replace(/^\/desired_state/, '')),
    ]
    if (used.includes(pointer))
      report(
        ['field_classes', 'sensitive'],
        'sensitive',
        `${pointer} is in identity, drift_paths or indexed_paths`,
        'Take it out there.',
      )
  }
}
