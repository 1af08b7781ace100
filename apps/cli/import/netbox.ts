import type { ImportItem } from '../../shared/contracts/catalog/imports.ts'
import {
  type Collected,
  type Container,
  collect,
  type Fields,
  fieldsOf,
  isFields,
  labelOf,
  listOf,
  positiveOf,
  type Reader,
  some,
  textOf,
} from './items.ts'
import { SourceError } from './source.ts'

type Row = { model: string; pk: string; fields: Fields }
type Place = {
  found: Collected
  byId: ReadonlyMap<string, Row>
  /** Ports by the cable that they are on and its end. */
  ends: ReadonlyMap<string, Row[]>
  /** Power ports by their device. */
  powered: ReadonlyMap<string, Row[]>
  source: string
  into: Container | undefined
}
type Rule = (row: Row, place: Place) => void

/** Models that NetBox keeps for itself, nothing of what exists; and the secrets of its plugin, which are never read. */
const OWN = /^(auth|admin|contenttypes|sessions|users|django_rq|extras|core|social_django|secrets|netbox_secrets)\./

/**
 * An export of NetBox: the rows of `dumpdata` ({model, pk, fields}), or an object from endpoint (`dcim/sites`) to the
 * rows of its API (catalog.md 13). Secrets are never read.
 */
export const readNetbox: Reader = (documents, { source, into }) => {
  const rows = documents.flatMap(rowsOf)
  const byId = new Map<string, Row>()
  for (const row of rows) {
    if (byId.has(`${row.model}/${row.pk}`)) throw new SourceError(`${row.model}/${row.pk} is in it twice`)
    byId.set(`${row.model}/${row.pk}`, row)
  }
  const found = collect()
  const ends = Map.groupBy(rows, ({ fields }) => `${String(fields.cable)}/${String(fields.cable_end)}`)
  const power = rows.filter(({ model }) => model === 'dcim.powerport')
  const powered = Map.groupBy(power, ({ fields }) => String(fields.device))
  const place = { found, byId, ends, powered, source, into }
  for (const row of rows) {
    found.from(row.model, row.fields)
    if (!OWN.test(row.model)) (RULES[row.model] ?? other)(row, place)
  }
  return found.done()
}

const rowsOf = (document: unknown): Row[] => {
  if (Array.isArray(document)) return document.flatMap((row, index) => dumped(row, index) ?? [])
  if (!isFields(document))
    throw new SourceError('it is no NetBox export: neither a list of rows nor endpoints with rows')
  return Object.entries(document).flatMap(([endpoint, value]) => {
    const list = Array.isArray(value) ? value : fieldsOf(value).results
    if (!/^[a-z]+\/[a-z-]+$/.test(endpoint) || !Array.isArray(list))
      throw new SourceError(
        `it is no NetBox export: ${JSON.stringify(endpoint).slice(0, 80)} is no endpoint with a list of rows`,
      )
    return list.map((row, index) => served(endpoint, row, index))
  })
}

/** A row without pk is of a dump with natural keys, where nothing can name it: it is NetBox's own and is left out. */
const dumped = (row: unknown, index: number): Row | undefined => {
  const { model, pk, fields } = fieldsOf(row)
  if (typeof model !== 'string' || !isFields(fields))
    throw new SourceError(`it is no NetBox export: row ${index + 1} has no model and fields`)
  if (pk === undefined && OWN.test(model)) return undefined
  if (typeof pk !== 'number' && typeof pk !== 'string')
    throw new SourceError(`row ${index + 1}, a ${model.slice(0, 80)}, has no pk`)
  return { model, pk: String(pk), fields }
}

/** A row of the API: choices are {value}, references {id}. */
const served = (endpoint: string, row: unknown, index: number): Row => {
  const { id, ...members } = fieldsOf(row)
  if (typeof id !== 'number' && typeof id !== 'string')
    throw new SourceError(`row ${index + 1} of ${endpoint} has no id`)
  const [app, name = ''] = endpoint.split('/')
  const flat = Object.entries(members).map(([key, value]) => {
    const { value: choice, id: reference } = fieldsOf(value)
    return [key, choice ?? reference ?? value]
  })
  const model = name
    .replaceAll('-', '')
    .replace(/ies$/, 'y')
    .replace(/(?<=ch|ss|x)es$|(?<![is])s$/, '')
  return { model: `${app}.${model}`, pk: String(id), fields: Object.fromEntries(flat) }
}

const idOf = ({ model, pk }: Row) => `${model}/${pk}`
const refTo = (model: string, value: unknown, { byId }: Place): Row | undefined =>
  value === null || value === undefined ? undefined : byId.get(`${model}/${String(value)}`)
const nameOf = ({ model, pk, fields }: Row): string => (textOf(fields.name) ?? `${model}-${pk}`).slice(0, 253)

const LIFECYCLES: Record<string, string> = {
  planned: 'planned',
  staged: 'planned',
  inventory: 'planned',
  failed: 'failed',
  decommissioning: 'deprovisioning',
}
const lifecycleOf = ({ fields }: Row): string => LIFECYCLES[String(fields.status)] ?? 'active'

/** Status and tags as labels; where a row stands in the order of NetBox stays visible by its model. */
const labelsOf = ({ model, fields }: Row): NonNullable<ImportItem['labels']> => {
  const tags = listOf(fields.tags).flatMap((tag) => textOf(tag) ?? textOf(fieldsOf(tag).slug) ?? [])
  return {
    'netbox.dev/model': labelOf(model),
    ...(textOf(fields.status) && { 'netbox.dev/status': labelOf(String(fields.status)) }),
    ...Object.fromEntries(tags.slice(0, 20).map((tag) => [`netbox.dev/tag-${labelOf(tag)}`.slice(0, 60), ''])),
  }
}

const base = (row: Row) => ({ external_id: idOf(row), name: nameOf(row), labels: labelsOf(row) })

/** Regions nest in NetBox and not here: the ones that hold sites are taken, those above them become a label. */
const site: Rule = (row, place) => {
  const region = refTo('dcim.region', row.fields.region, place)
  const above = region && refTo('dcim.region', region.fields.parent, place)
  const parent_external_id = place.found.ensure(
    region
      ? {
          ...base(region),
          type_key: 'topology.region',
          labels: { ...labelsOf(region), ...(above && { 'netbox.dev/region': labelOf(nameOf(above)) }) },
          desired_state: { code: (textOf(region.fields.slug) ?? nameOf(region)).slice(0, 63) },
        }
      : { external_id: 'region/none', type_key: 'topology.region', name: 'No region', desired_state: { code: 'none' } },
  )
  const { slug, physical_address } = row.fields
  place.found.ensure({
    ...base(row),
    type_key: 'topology.datacenter',
    parent_external_id,
    desired_state: some({
      code: (textOf(slug) ?? nameOf(row)).slice(0, 63),
      address: textOf(physical_address)?.slice(0, 1000),
    }),
  })
}

/** The layer of a kind in a site, made when it is first needed. */
const layerIn = (kind: string, owner: Row, place: Place): string | undefined => {
  if (!owner) return undefined
  const layer_kind =
    kind
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replace(/^[^a-z]+/, '')
      .slice(0, 32) || 'other'
  site(owner, place)
  return place.found.ensure({
    external_id: `layer/${owner.pk}/${layer_kind}`,
    type_key: 'topology.layer',
    name: layer_kind,
    parent_external_id: idOf(owner),
    desired_state: { layer_kind },
  })
}

/** The site of a row that has one, or whose scope is one: `dcim.site`, in dumps also as `["dcim", "site"]`. */
const siteOf = ({ fields }: Row, place: Place): Row | undefined => {
  const scope = [fields.scope_type].flat().join('.')
  return refTo('dcim.site', scope === 'dcim.site' ? fields.scope_id : (fields.site ?? fields._site), place)
}

const vlan: Rule = (row, place) => {
  const group = refTo('ipam.vlangroup', row.fields.group, place)
  const at = siteOf(row, place) ?? (group && siteOf(group, place))
  if (!at) return place.found.skip('ipam.vlan without site')
  const number = positiveOf(row.fields.vid)
  place.found.add({
    ...base(row),
    name: `${nameOf(row)} (${number ?? row.pk})`.slice(0, 253),
    type_key: 'topology.segment',
    ...parent(layerIn('network', at, place)),
    desired_state: some({ vlan: number }),
  })
}

const parent = (parent_external_id: string | undefined) =>
  parent_external_id === undefined ? {} : { parent_external_id }

const rack: Rule = (row, place) => {
  const at = refTo('dcim.site', row.fields.site, place)
  if (!at) return place.found.skip('dcim.rack without site')
  site(at, place)
  const location = refTo('dcim.location', row.fields.location, place)
  place.found.add({
    ...base(row),
    name: location ? `${nameOf(location)}/${nameOf(row)}`.slice(0, 253) : nameOf(row),
    type_key: 'infra.rack',
    parent_external_id: idOf(at),
    desired_state: some({ height_u: positiveOf(row.fields.u_height) }),
  })
}

const NETWORK: [RegExp, string][] = [
  [/router|gateway|\bwan\b/i, 'router'],
  [/switch|distribution|access|\btor\b|spine|leaf/i, 'switch'],
  [/firewall/i, 'firewall'],
  [/\bpdu\b|patch|panel|wireless|\bap\b|console|modem/i, 'other'],
]

const device: Rule = (row, place) => {
  const at = refTo('dcim.site', row.fields.site, place)
  if (!at) return place.found.skip('dcim.device without site')
  const role_row = refTo('dcim.devicerole', row.fields.role ?? row.fields.device_role, place)
  const role_name = role_row ? nameOf(role_row) : 'other'
  const rack_row = refTo('dcim.rack', row.fields.rack, place)
  const role = NETWORK.find(([words]) => words.test(role_name))?.[1]
  const { serial, rack: _, ...fields } = row.fields
  place.found.add({
    ...base(row),
    type_key: role ? 'infra.network_device' : 'infra.host',
    lifecycle_status: lifecycleOf(row),
    parent_external_id: rack_row ? idOf(rack_row) : (layerIn(role_name, at, place) ?? idOf(at)),
    labels: { ...labelsOf({ ...row, fields }), 'netbox.dev/role': labelOf(role_name) },
    desired_state: some({
      hostname: nameOf(row),
      role,
      serial_number: role ? undefined : textOf(serial)?.slice(0, 128),
    }),
    relationships: feedsOf(row, place),
  })
}

/** The devices whose outlets feed this one. */
const feedsOf = (row: Row, place: Place): NonNullable<ImportItem['relationships']> => {
  const far = (place.powered.get(row.pk) ?? []).flatMap((port) => farEnds(port, place))
  const feeding = far.filter(({ model }) => model === 'dcim.poweroutlet')
  const devices = new Set(feeding.map(({ fields }) => `dcim.device/${String(fields.device)}`))
  return [...devices]
    .filter((id) => place.byId.has(id) && id !== idOf(row))
    .map((target_external_id) => ({ type_key: 'depends_on', target_external_id }))
}

/** What the cable of a port ends at on its other side. */
const farEnds = ({ fields }: Row, { ends }: Place): Row[] => {
  const { cable, cable_end } = fields
  if (cable === null || cable === undefined || (cable_end !== 'A' && cable_end !== 'B')) return []
  return ends.get(`${String(cable)}/${cable_end === 'A' ? 'B' : 'A'}`) ?? []
}

const cluster: Rule = (row, place) => {
  const at = siteOf(row, place)
  if (at) site(at, place)
  place.found.add({
    ...base(row),
    type_key: 'infra.cluster',
    lifecycle_status: 'active',
    ...(at ? { parent_external_id: idOf(at) } : place.into !== undefined && { parent_id: place.into.resource_id }),
    desired_state: { kind: 'hypervisor' },
  })
}

const machine: Rule = (row, place) => {
  const at = refTo('virtualization.cluster', row.fields.cluster, place)
  const on = refTo('dcim.device', row.fields.device, place)
  const { vcpus, memory, disk } = row.fields
  place.found.add({
    ...base(row),
    type_key: 'infra.virtual_machine',
    lifecycle_status: lifecycleOf(row),
    ...(at ? { parent_external_id: idOf(at) } : place.into !== undefined && { parent_id: place.into.resource_id }),
    desired_state: some({
      hostname: nameOf(row),
      cpu_cores: positiveOf(typeof vcpus === 'string' ? Math.ceil(Number(vcpus)) : vcpus),
      memory_mib: positiveOf(memory),
      // Since NetBox 4.1, which also brought the serial, in MB and no longer in GB.
      disk_gib: 'serial' in row.fields ? positiveOf(Math.ceil(Number(disk ?? 0) / 1000)) : positiveOf(disk),
    }),
    ...(on && { relationships: [{ type_key: 'hosted_on', target_external_id: idOf(on) }] }),
  })
}

const port =
  (model: string, member: string): Rule =>
  (row, place) => {
    const owner = refTo(model, row.fields[member], place)
    if (!owner) return place.found.skip(`${row.model} without ${member}`)
    const { mac_address, primary_mac_address, type, enabled, speed } = row.fields
    const primary = refTo('dcim.macaddress', primary_mac_address, place)
    place.found.add({
      ...base(row),
      type_key: 'infra.interface',
      parent_external_id: idOf(owner),
      desired_state: some({
        kind: textOf(type)?.slice(0, 63),
        mac: textOf(mac_address) ?? textOf(primary?.fields.mac_address),
        enabled: typeof enabled === 'boolean' ? enabled : undefined,
        speed_mbps: typeof speed === 'number' && speed >= 1000 ? Math.floor(speed / 1000) : undefined,
      }),
      relationships: cablesFrom(row, place),
    })
  }

/** Cables between two interfaces, told by the one that the cable names first: as NetBox keeps them since 3.3, or before. */
const cablesFrom = (row: Row, place: Place): NonNullable<ImportItem['relationships']> => {
  const { byId } = place
  if (row.fields.cable_end === 'A')
    return farEnds(row, place)
      .filter(({ model }) => model === 'dcim.interface')
      .map((far) => ({ type_key: 'connects_to', target_external_id: idOf(far) }))
  const cable = byId.get(`dcim.cable/${String(row.fields.cable)}`)?.fields
  if (!cable) return []
  const end = (side: 'a' | 'b') =>
    `${listOf(cable[`termination_${side}_type`]).join('.')}/${String(cable[`termination_${side}_id`])}`
  const other = end('a') === idOf(row) ? end('b') : undefined
  return other !== undefined && byId.has(other) && other.startsWith('dcim.interface/')
    ? [{ type_key: 'connects_to', target_external_id: other }]
    : []
}

/** What no rule knows: that it exists. */
const other: Rule = (row, { found, source, into }) =>
  found.add({
    ...base(row),
    ...found.generic('netbox', row.model),
    name: `${nameOf(row).slice(0, 100)} (${source}/${idOf(row)})`.slice(-253),
    ...(into !== undefined && { parent_id: into.resource_id }),
  })

const RULES: Record<string, Rule> = {
  'dcim.site': site,
  'ipam.vlan': vlan,
  'dcim.rack': rack,
  'dcim.device': device,
  'virtualization.cluster': cluster,
  'virtualization.virtualmachine': machine,
  'dcim.interface': port('dcim.device', 'device'),
  'virtualization.vminterface': port('virtualization.virtualmachine', 'virtual_machine'),
  // As its API calls them.
  'virtualization.interface': port('virtualization.virtualmachine', 'virtual_machine'),
  // Read with what they belong to.
  'dcim.region': () => undefined,
  'dcim.cable': () => undefined,
  'dcim.devicerole': () => undefined,
  'dcim.location': () => undefined,
  'dcim.cabletermination': () => undefined,
  'dcim.macaddress': () => undefined,
  'dcim.powerport': () => undefined,
  'dcim.poweroutlet': () => undefined,
  'ipam.vlangroup': () => undefined,
}
