import semver from 'semver'
import type { ResourceType } from '../../shared/contracts/catalog/types.ts'
import { pluck } from '../../shared/data/pick.ts'
import { lifecycleFaults } from '../document/lifecycle.ts'
import { isObject, type JsonObject } from '../document/pointers.ts'
import { foreignRefs, schemaAt, validatorOf } from '../document/schemas.ts'
import type { PackFile, Report, TypeEntry, TypeModel } from './format.ts'

/** The rules for one entry of a pack: schemas, pointers, references, lifecycles, cardinalities. */
type Path = Parameters<Report>[0]

const MAX_SCHEMA_BYTES = 65_536

const checkSchema = (schema: object | undefined, path: Path, report: Report) => {
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

export const checkRelationshipTypes = (pack: PackFile, model: TypeModel, report: Report) => {
  for (const [i, entry] of (pack.relationship_types ?? []).entries()) {
    const at = (...path: Path) => ['relationship_types', i, ...path]
    for (const end of ['from', 'to'] as const) {
      for (const [k, key] of entry[end].entries()) {
        if (!model.types.some(({ type_key }) => type_key === key))
          report(at(end, k), 'reference', `type ${key} is not defined`, 'Name a defined type.')
      }
    }
    if (entry.containment && entry.type_key !== 'contained_in')
      report(at('containment'), 'containment', 'only contained_in contains', 'Remove containment.')
    if (entry.containment && !(entry.acyclic && entry.from_max === 1))
      report(at('containment'), 'containment', 'needs acyclic: true and from_max: 1', 'Set both.')
    if (entry.symmetric && entry.acyclic) report(at('symmetric'), 'symmetric', 'cannot be acyclic too', 'Choose one.')
    const { health } = entry
    if (health?.mode === 'quorum' && health.k === undefined)
      report(at('health'), 'health', 'a quorum needs k', 'Give a count, or a share below 1.')
    if (health?.k !== undefined && health.k >= 1 && !Number.isInteger(health.k))
      report(at('health', 'k'), 'health', `${health.k} is neither a count nor a share below 1`, 'Correct k.')
    checkSchema(entry.properties_schema, at('properties_schema'), report)
  }
}

const NUMERIC = new Set(['gte', 'lte'])

export const checkCapabilities = (pack: PackFile, report: Report) => {
  for (const [i, entry] of (pack.capabilities ?? []).entries()) {
    const at = (...path: Path) => ['capabilities', i, ...path]
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
      report(at('sharing'), 'unit', 'a counted capability needs a unit', 'Add unit.')
  }
}

export const checkType = (entry: TypeEntry, type: ResourceType, model: TypeModel, report: Report) => {
  checkSchema(type.desired_state_schema, ['desired_state_schema'], report)
  checkSchema(type.observed_state_schema, ['observed_state_schema'], report)
  checkPointers(entry, type, report)
  if (typeof entry.lifecycle === 'object') {
    for (const fault of lifecycleFaults(entry.lifecycle))
      report(['lifecycle'], 'lifecycle', `it ${fault}`, 'Correct states and transitions.')
  }
  for (const [k, rule] of (entry.relationships ?? []).entries()) {
    if (!model.relationship_types.some(({ type_key }) => type_key === rule.type_key))
      report(
        ['relationships', k, 'type_key'],
        'reference',
        `relationship type ${rule.type_key} is not defined`,
        'Name a defined one.',
      )
    for (const [p, key] of rule.peer_types.entries()) {
      if (!model.types.some(({ type_key }) => type_key === key))
        report(['relationships', k, 'peer_types', p], 'reference', `type ${key} is not defined`, 'Name a defined type.')
    }
    if (typeof rule.max === 'number' && (rule.min ?? 0) > rule.max)
      report(['relationships', k], 'cardinality', `min ${rule.min} is above max ${rule.max}`, 'Correct one of them.')
    checkLimits(rule, model, (...rest) => report(['relationships', k], ...rest))
  }
  checkOnce(entry, report)
  checkUses(entry, model, report)
  checkInherited(entry, type, report)
  checkRequirements(entry, type, model, report)
  for (const [k, action] of (entry.actions ?? []).entries()) {
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
  }
}

type Rule = NonNullable<TypeEntry['relationships']>[number]
type ReportHere = (rule: string, message: string, fix: string) => void

/** Checks a rule against the limits of its relationship type; the tighter one applies. */
const checkLimits = (rule: Rule, model: TypeModel, report: ReportHere) => {
  const relation = model.relationship_types.find(({ type_key }) => type_key === rule.type_key)
  if (!relation) return
  const most = rule.direction === 'out' ? relation.from_max : relation.to_max
  if (most !== null && (rule.min ?? 0) > most)
    report('cardinality', `min ${rule.min} is above the ${most} that ${rule.type_key} allows`, 'Lower min.')
  if (relation.symmetric && rule.direction === 'in')
    report('symmetric', `${rule.type_key} has no direction`, 'Write direction: out; it counts at both ends.')
}

/** A type's own lifecycle must still define the states in which the base's actions are allowed. */
const checkInherited = (entry: TypeEntry, type: ResourceType, report: Report) => {
  for (const { action_key, allowed_in } of type.actions) {
    if (entry.actions?.some((own) => own.action_key === action_key)) continue
    const unknown = allowed_in.find((state) => !type.lifecycle.states.includes(state))
    if (unknown)
      report(
        ['lifecycle'],
        'action',
        `it lacks the state ${unknown}, in which ${action_key} is allowed`,
        'Keep that state.',
      )
  }
}

/** A second entry with the same key would silently replace the first. */
const checkOnce = (entry: TypeEntry, report: Report) => {
  const once = (list: string | Path, at: string, keys: readonly string[]) => {
    for (const [k, key] of keys.entries())
      if (keys.indexOf(key) !== k)
        report([list, k, at].flat(), 'unique', `${key} is defined twice`, 'Remove one of them.')
  }
  const { relationships = [], requires = [], provides = [], actions = [] } = entry
  once(
    'relationships',
    'type_key',
    relationships.map(({ direction, type_key }) => `${direction} ${type_key}`),
  )
  once('requires', 'requirement_key', pluck(requires, 'requirement_key'))
  once('provides', 'capability_key', pluck(provides, 'capability_key'))
  once('actions', 'action_key', pluck(actions, 'action_key'))
  once(['health', 'metrics'], 'key', pluck(entry.health?.metrics ?? [], 'key'))
}

/** Values that requirements ask for must be attributes of the capability; those taken from the resource must exist. */
const checkRequirements = (entry: TypeEntry, type: ResourceType, model: TypeModel, report: Report) => {
  for (const [k, use] of (entry.requires ?? []).entries()) {
    const versions = model.capabilities.filter(({ capability_key }) => capability_key === use.capability_key)
    if (versions.length === 0) continue
    for (const [attribute, value] of Object.entries(use.where ?? {})) {
      const path = ['requires', k, 'where', attribute]
      if (!versions.some((one) => schemaAt(one.attributes_schema as JsonObject, `/${attribute}`) !== undefined))
        report(path, 'reference', `${attribute} is not an attribute of ${use.capability_key}`, 'Name one that it has.')
      const rule = versions.at(-1)?.match_rules[attribute]
      if (rule === 'semver' && typeof value === 'string' && semver.validRange(value) === null)
        report(path, 'range', `"${value}" is not a version range`, 'Write it as npm does, such as ^1.0.0.')
      checkSource(value, type, (...rest) => report(path, ...rest))
    }
    checkSource(use.amount, type, (...rest) => report(['requires', k, 'amount'], ...rest))
  }
}

const checkSource = (value: unknown, type: ResourceType, report: ReportHere) => {
  if (!isObject(value) || !('$from' in value)) return
  const [, part, pointer] = /^target\/(desired_state|observed_state)(\/.+)$/.exec(String(value.$from)) ?? []
  if (!part || !pointer)
    return report(
      'pointer',
      `${String(value.$from)} is not a pointer into the resource`,
      'Write target/desired_state/… or target/observed_state/….',
    )
  const schema = part === 'desired_state' ? type.desired_state_schema : type.observed_state_schema
  if (schemaAt(schema as JsonObject, pointer) === undefined)
    report('pointer', `${pointer} is not in the ${part} schema`, 'Name a property that the schema has.')
}

const checkUses = (entry: TypeEntry, model: TypeModel, report: Report) => {
  for (const list of ['provides', 'requires'] as const) {
    for (const [k, use] of (entry[list] ?? []).entries()) {
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
          `no version of ${use.capability_key} is in the range ${use.version_range}`,
          'Correct the range.',
        )
    }
  }
}

const checkPointers = (entry: TypeEntry, type: ResourceType, report: Report) => {
  const desired = type.desired_state_schema as JsonObject
  const observed = type.observed_state_schema as JsonObject
  const check = (path: Path, pointer: string, ...schemas: JsonObject[]) => {
    if (schemas.some((schema) => schemaAt(schema, pointer) === undefined))
      report(path, 'pointer', `${pointer} is not in the schema`, 'Name a property that the schema has.')
  }
  for (const name of ['immutable', 'read_only', 'sensitive'] as const) {
    for (const [k, pointer] of (entry.field_classes?.[name] ?? []).entries())
      check(['field_classes', name, k], pointer, desired)
  }
  for (const [k, pointer] of (entry.identity ?? []).entries()) check(['identity', k], pointer, desired)
  for (const [k, pointer] of (entry.drift_paths ?? []).entries()) check(['drift_paths', k], pointer, desired, observed)
  for (const [k, pointer] of (entry.indexed_paths ?? []).entries()) {
    const match = /^\/(desired_state|observed_state)(\/.+)$/.exec(pointer)
    if (!match?.[2])
      report(
        ['indexed_paths', k],
        'pointer',
        `${pointer} is in neither desired_state nor observed_state`,
        'Start with /desired_state/ or /observed_state/.',
      )
    else check(['indexed_paths', k], match[2], match[1] === 'desired_state' ? desired : observed)
  }
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
