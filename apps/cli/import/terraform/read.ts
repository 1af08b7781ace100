import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { type Collected, collect } from '../collect.ts'
import {
  type Container,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  marksOf,
  type Options,
  type Reader,
  textOf,
} from '../items.ts'
import { placeOf } from '../places.ts'
import { withRest } from '../rest.ts'
import { SourceError } from '../source.ts'
import { cloudOf, type Mapped, RULES } from './rules.ts'
import { plainNames, withoutSecrets } from './secrets.ts'

/** One instance of a managed resource, from a state file or from `terraform show -json`. */
type Instance = { address: string; type: string; values: Fields; depends_on: string[] }
type Known = { instance: Instance; item: Mapped }
type Place = {
  found: Collected
  options: Options
  known: ReadonlySet<string>
  instances: ReadonlyMap<string, string[]>
  /** Subnets, by address and by the id that the provider gave them. */
  segments: ReadonlyMap<string, string>
}

/** Reads a state's resources (catalog.md 13): machines, stores, balancers, volumes, networks, names, certificates. */
export const readTerraform: Reader = (documents, options) => {
  const [state] = documents
  if (!isFields(state)) throw new SourceError('it is not a Terraform state: its top level is not an object')
  const found = collect()
  const mapped = instancesOf(state, found).map((instance): Known => {
    const item = RULES.find(({ types }) => types.test(instance.type))?.map(instance.values)
    const provider = instance.type.split('_')[0] ?? ''
    const generic = () => ({ ...found.generic(provider, instance.type), name: undefined })
    return { instance, item: item ?? cloudOf(provider, instance) ?? generic() }
  })
  const segments = mapped
    .filter(({ item }) => item.type_key === 'topology.segment')
    .flatMap(({ instance: { address, values } }) => [address, textOf(values.id) ?? address].map((id) => [id, address]))
  const place = {
    found,
    options,
    known: new Set(mapped.map(({ instance }) => instance.address)),
    instances: groupedBy(mapped.map(({ instance }) => instance.address)),
    segments: new Map(segments as [string, string][]),
  }
  for (const { instance, item } of mapped) {
    found.from(instance.type, instance.values)
    const { marks, values } = marked(instance.values)
    const { type } = instance
    const open = hasAttributes(item.type_key)
    const rest = { ledger: found.ledger, kind: type, prefix: PREFIX, open, ...plainNames(type) }
    found.add(withRest(itemOf(instance, item, marks, place), values, rest))
  }
  for (const [name] of Object.entries(fieldsOf(state.outputs)))
    found.skip(`output ${name}`, 'outputs are values of the configuration, not resources')
  return found.done()
}

const PREFIX = 'terraform.io/'

/** Where providers keep marks; `tags_all` includes those that a provider sets by default. */
const MARKS = ['tags', 'labels', 'tags_all', 'effective_labels']
/** The marks of an instance as one map, and its other values; marks that contradict an earlier one stay values. */
const marked = (all: Fields): { marks: Fields; values: Fields } => {
  const marks: Fields = {}
  const values = { ...all }
  for (const name of MARKS) {
    if (!isFields(all[name])) continue
    const given = Object.entries(all[name])
    values[name] = Object.fromEntries(given.filter(([key, value]) => Object.hasOwn(marks, key) && marks[key] !== value))
    Object.assign(marks, { ...all[name], ...marks })
  }
  return { marks, values }
}
const hasAttributes = (type_key: string) => type_key.startsWith('cloud.') || type_key === 'infra.generic'

const groupedBy = (addresses: string[]) =>
  Map.groupBy(addresses, (address) => address.replace(/\[[^[\]]*\](#.*)?$/, ''))

const itemOf = (instance: Instance, { name, ...item }: Mapped, marks: Fields, place: Place): ImportItem => {
  const { address, type } = instance
  const edges = [...new Set(instance.depends_on.flatMap((to) => targetsOf(to, address, place)))].filter(
    (to) => to !== address,
  )
  const { labels, annotations } = marksOf(marks, `${PREFIX}tags`)
  const managed = /^infra\.(?!endpoint|generic)/.test(item.type_key)
  return {
    external_id: address,
    ...item,
    // Addresses and hosts are unique only within a state.
    name: /^(infra\.(endpoint|generic)|cloud\..*)$/.test(item.type_key)
      ? `${place.options.source}/${address}`.slice(-253)
      : (name ?? address),
    ...(managed && { lifecycle_status: 'active' }),
    ...containerOf(instance, item.type_key, edges, place),
    labels: { ...labels, 'terraform.io/type': type.slice(0, 63) },
    ...(annotations && { annotations }),
    relationships: edges.map((target_external_id) => ({ type_key: 'depends_on', target_external_id })),
  }
}

/** A dependency names a resource and means all its instances. */
const targetsOf = (to: string, from: string, { found, known, instances }: Place): string[] => {
  const targets = known.has(to) ? [to] : (instances.get(to) ?? [])
  if (targets.length === 0)
    found.ledger.field('computed', 'dependency', 'depends_on', 'no such instance is imported', `${from} > ${to}`)
  return targets
}

const IN_SEGMENT = /^infra\.(virtual_machine|cluster|database|volume|load_balancer|certificate)$/
const IN_DATACENTER = /^infra\.(virtual_machine|cluster|database|volume|certificate)$/

/** Zones named by a letter after their region: `eu-west-1a`, `europe-west4-b`. */
const REGION_OF = /^(.*\d|.+(?=-))-?[a-z]$/

/** Zones of other forms that end in a number, such as `fr-par-1`, have no region but themselves. */
const regionOf = (zone = ''): string | undefined =>
  REGION_OF.exec(zone)?.[1] ?? (/^[a-z].*\d$/.test(zone) ? zone : undefined)

/** Its subnet if that is also imported, otherwise the data center of its zone, otherwise below --into. */
const containerOf = ({ values }: Instance, type_key: string, edges: string[], place: Place) => {
  const { found, options, segments } = place
  const segment = [values.subnet_id, ...edges].map((id) => segments.get(String(id))).find((id) => id !== undefined)
  if (segment && options.into !== undefined && IN_SEGMENT.test(type_key)) return { parent_external_id: segment }
  const named = textOf(values.availability_zone) ?? textOf(values.zone)
  const region = textOf(values.region) ?? textOf(values.location) ?? regionOf(named)
  // Azure numbers the zones of each region.
  const zone = /^\d+$/.test(named ?? '') ? `${region}-${named}` : named
  const at = IN_DATACENTER.test(type_key) ? placeOf(found, region, zone) : undefined
  if (at !== undefined) return { parent_external_id: at }
  return options.into === undefined || type_key === 'infra.endpoint' ? {} : below(options.into, type_key, place)
}

/** Adds the levels between a data center or layer and the item: a layer `cloud`, and a segment named as the source. */
const below = ({ resource_id, type_key: at }: Container, type_key: string, { found, options }: Place) => {
  const direct = { parent_id: resource_id }
  const wants_layer = type_key === 'topology.segment'
  const wants_segment = IN_SEGMENT.test(type_key)
  if (at !== 'topology.datacenter' && at !== 'topology.layer') return direct
  if (at === 'topology.datacenter' ? IN_DATACENTER.test(type_key) : wants_layer) return direct
  if (!wants_layer && !wants_segment) return direct
  const layer =
    at === 'topology.layer'
      ? direct
      : {
          parent_external_id: found.ensure({
            external_id: 'layer/cloud',
            type_key: 'topology.layer',
            name: `${options.source} cloud`,
            desired_state: { layer_kind: 'cloud' },
            ...direct,
          }),
        }
  if (wants_layer) return layer
  const external_id = `segment/${options.source}`
  return {
    parent_external_id: found.ensure({
      external_id,
      type_key: 'topology.segment',
      name: options.source,
      desired_state: {},
      ...layer,
    }),
  }
}

const instancesOf = (state: Fields, found: Collected): Instance[] => {
  if (isFields(state.values)) return shownIn(fieldsOf(state.values.root_module), found)
  if (state.version !== 4)
    throw new SourceError(
      state.version === undefined
        ? 'it is not a Terraform state: it has neither version nor values'
        : `state version ${JSON.stringify(state.version)} is not supported, only 4: write it again with Terraform 0.12 or later`,
    )
  if (!Array.isArray(state.resources))
    throw new SourceError('it is not a Terraform state: its resources are not a list')
  return state.resources.flatMap((entry, index) => stored(fieldsOf(entry), index, found))
}

const stored = ({ mode, type, name, module, instances }: Fields, index: number, found: Collected): Instance[] => {
  if (textOf(type) === undefined || textOf(name) === undefined)
    throw new SourceError(`resource ${index + 1} in it has no type or name`)
  if (mode === 'data') {
    found.skip(`data ${type}`, DATA)
    return []
  }
  const base = `${textOf(module) ? `${module}.` : ''}${type}.${name}`
  return listOf(instances).map((instance): Instance => {
    const { index_key, attributes, sensitive_attributes, dependencies, deposed } = fieldsOf(instance)
    const key = index_key === undefined ? '' : `[${JSON.stringify(index_key)}]`
    return {
      address: `${base}${key}${ofDeposed(deposed)}`,
      type: String(type),
      values: withoutSecrets(String(type), fieldsOf(attributes), listOf(sensitive_attributes).map(memberOf), found),
      depends_on: texts(dependencies),
    }
  })
}

/** Sets an object that waits for its deletion apart from its replacement. */
const ofDeposed = (key: unknown): string => (textOf(key) === undefined ? '' : `#${key}`)

/** A sensitive attribute is named by a path of steps, of which the first names the member. */
const memberOf = (path: unknown): string =>
  typeof path === 'string' ? path : String(fieldsOf(listOf(path)[0]).value ?? '')
const DATA = 'data sources belong to another state'
const texts = (list: unknown): string[] => listOf(list).filter((one): one is string => typeof one === 'string')

/** `terraform show -json`: modules within modules. */
const shownIn = (module: Fields, found: Collected): Instance[] => {
  const own = listOf(module.resources).flatMap((entry, index): Instance[] => {
    const { address, mode, type, values, sensitive_values, depends_on, deposed_key } = fieldsOf(entry)
    if (textOf(address) === undefined || textOf(type) === undefined)
      throw new SourceError(
        `resource ${index + 1} of ${textOf(module.address)?.slice(0, 80) ?? 'the root module'} has no address or type`,
      )
    if (mode === 'data') {
      found.skip(`data ${type}`, DATA)
      return []
    }
    const marks = Object.entries(fieldsOf(sensitive_values)).filter(([, mark]) => isMarked(mark))
    const seen = withoutSecrets(
      String(type),
      fieldsOf(values),
      marks.map(([member]) => member),
      found,
    )
    return [
      {
        address: `${address}${ofDeposed(deposed_key)}`,
        type: String(type),
        values: seen,
        depends_on: texts(depends_on),
      },
    ]
  })
  return [...own, ...listOf(module.child_modules).flatMap((child) => shownIn(fieldsOf(child), found))]
}

/** A mark may be nested deep inside: then the whole member is sensitive. */
const isMarked = (mark: unknown): boolean =>
  mark === true || (typeof mark === 'object' && mark !== null && Object.values(mark).some(isMarked))
