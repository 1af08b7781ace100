import semver from 'semver'
import type { ResourceType } from '../../shared/contracts/catalog/types.ts'
import { checkCapabilities, checkRelationshipTypes, checkType } from './entries.ts'
import { completeCapability, completeRelationshipType, FlattenError, flattenType } from './flatten.ts'
import type { Fault, PackFile, Report, TypeEntry, TypeModel } from './format.ts'

/** Checks packs against each other (catalog.md 2, "Loading"). Faults in rule order; the model is complete if none. */
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
  for (const [n, pack] of packs.entries()) checkRequires(packs, pack, n, reportIn(n))
  checkUnique(packs, reportIn)
  flattenAll(packs, model, reportIn)
  for (const [n, pack] of packs.entries()) {
    checkRelationshipTypes(pack, model, reportIn(n))
    checkCapabilities(pack, reportIn(n))
    for (const [i, entry] of (pack.types ?? []).entries()) {
      const type = model.types.find(({ type_key }) => type_key === entry.type_key)
      if (type) checkType(entry, type, model, (path, ...rest) => reportIn(n)(['types', i, ...path], ...rest))
    }
  }
  return { model, faults }
}

const checkRequires = (packs: readonly PackFile[], pack: PackFile, n: number, report: Report) => {
  for (const [name, range] of Object.entries(pack.requires ?? {})) {
    const other = packs.find((candidate) => candidate.pack === name)
    if (semver.validRange(range) === null)
      report(['requires', name], 'range', `"${range}" is not a version range`, 'Write it as npm does, such as ^1.0.0.')
    else if (!other)
      report(['requires', name], 'requires', `pack ${name} does not exist`, 'Add its folder to CATALOG__PACKS__DIRS.')
    else if (!semver.satisfies(other.version, range))
      report(
        ['requires', name],
        'requires',
        `pack ${name} is ${other.version}, not ${range}`,
        'Use a version in that range.',
      )
  }
  if (packs.findIndex((candidate) => candidate.pack === pack.pack) !== n)
    report(['pack'], 'unique', `pack ${pack.pack} is defined twice`, 'Rename one of them.')
}

const checkUnique = (packs: readonly PackFile[], reportIn: (pack: number) => Report) => {
  const seen = new Map<string, string>()
  const once = (n: number, path: Fault['path'], name: string) => {
    const other = seen.get(name)
    if (other) reportIn(n)(path, 'unique', `${name} is already defined in ${other}`, 'Give it another key.')
    else seen.set(name, packs[n]?.pack ?? '')
  }
  for (const [n, pack] of packs.entries()) {
    for (const [i, item] of (pack.relationship_types ?? []).entries())
      once(n, ['relationship_types', i, 'type_key'], `relationship type ${item.type_key}`)
    for (const [i, item] of (pack.capabilities ?? []).entries())
      once(n, ['capabilities', i, 'capability_key'], `capability ${item.capability_key} ${item.version}`)
    for (const [i, item] of (pack.types ?? []).entries()) once(n, ['types', i, 'type_key'], `type ${item.type_key}`)
  }
}

type Located = { entry: TypeEntry; pack: PackFile; n: number; i: number }

const flattenAll = (packs: readonly PackFile[], model: TypeModel, reportIn: (pack: number) => Report) => {
  const entries = new Map<string, Located>()
  for (const [n, pack] of packs.entries())
    for (const [i, entry] of (pack.types ?? []).entries()) entries.set(entry.type_key, { entry, pack, n, i })
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
        `${key} has no base type`,
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
        `${key} and its base disagree on ${error.message}`,
        'Make both identical, or leave it out here.',
      )
      return undefined
    }
  }
  for (const key of entries.keys()) flatten(key, [])
  model.types = [...done.values()].filter((type) => type !== undefined)
  for (const pack of packs) {
    for (const entry of pack.relationship_types ?? [])
      model.relationship_types.push(completeRelationshipType(entry, pack))
    for (const entry of pack.capabilities ?? []) model.capabilities.push(completeCapability(entry, pack))
  }
}
