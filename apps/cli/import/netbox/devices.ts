import { labelOf, positiveOf, some, textOf } from '../items.ts'
import { type Draft, type Edge, type Place, PREFIX } from './item.ts'
import { layerIn, noSite, SITE_FIELDS, siteOf } from './places.ts'
import { idOf, nameOf, type Row, refTo } from './rows.ts'

/** Devices, clusters, virtual machines and their interfaces. */
const LIFECYCLES: Record<string, string> = {
  planned: 'planned',
  staged: 'planned',
  inventory: 'planned',
  failed: 'failed',
  decommissioning: 'deprovisioning',
}
const lifecycleOf = ({ fields }: Row): string => LIFECYCLES[String(fields.status)] ?? 'active'

const NETWORK: [RegExp, string][] = [
  [/router|gateway|\bwan\b/i, 'router'],
  [/switch|distribution|access|\btor\b|spine|leaf/i, 'switch'],
  [/firewall/i, 'firewall'],
  [/\bpdu\b|patch|panel|wireless|\bap\b|console|modem/i, 'other'],
]

export const device = (row: Row, place: Place): Draft | undefined => {
  const at = siteOf(row, place)
  if (at === undefined) return undefined
  const field = row.fields.role === undefined ? 'device_role' : 'role'
  const role_row = refTo('dcim.devicerole', row.fields[field], place.index)
  const role_name = role_row ? nameOf(role_row) : 'other'
  const rack = refTo('dcim.rack', row.fields.rack, place.index)
  const role = NETWORK.find(([words]) => words.test(role_name))?.[1]
  const serial = role ? undefined : textOf(row.fields.serial)
  return {
    type_key: role ? 'infra.network_device' : 'infra.host',
    lifecycle_status: lifecycleOf(row),
    parent_external_id: rack ? idOf(rack) : layerIn(role_name, at, place),
    labels: { [`${PREFIX}role`]: labelOf(role_name) },
    desired_state: some({ hostname: nameOf(row).slice(0, 253), role, serial_number: serial?.slice(0, 128) }),
    relationships: feedsOf(row, place),
    read: ['name', 'site', ...(rack ? ['rack'] : []), ...(serial && serial.length <= 128 ? ['serial'] : [])],
    refs: { [field]: 'dcim.devicerole' },
  }
}

/** The edges of a device to the devices and power feeds that feed its power ports. */
const feedsOf = (row: Row, { index, cables, powered }: Place): Edge[] => {
  const feeds = (powered.get(row.pk) ?? [])
    .flatMap((port) => cables.realEnds(port))
    .flatMap((far) =>
      far.model === 'dcim.poweroutlet'
        ? [`dcim.device/${String(far.fields.device)}`]
        : far.model === 'dcim.powerfeed'
          ? [idOf(far)]
          : [],
    )
  return [...new Set(feeds)]
    .filter((id) => index.byId.has(id) && id !== idOf(row))
    .map((target_external_id) => ({ type_key: 'depends_on', target_external_id }))
}

export const cluster = (row: Row, place: Place): Draft => {
  const at = siteOf(row, place)
  return {
    type_key: 'infra.cluster',
    lifecycle_status: 'active',
    ...containerOf(at, place),
    desired_state: { kind: 'hypervisor' },
    read: ['name', ...SITE_FIELDS(row, place)],
    refs: { type: 'virtualization.clustertype', group: 'virtualization.clustergroup' },
  }
}

const containerOf = (at: string | undefined, place: Place): Pick<Draft, 'parent_external_id' | 'parent_id'> =>
  at !== undefined
    ? { parent_external_id: at }
    : place.into !== undefined
      ? { parent_id: place.into.resource_id }
      : { parent_external_id: noSite(place) }

export const machine = (row: Row, place: Place): Draft => {
  const at = refTo('virtualization.cluster', row.fields.cluster, place.index)
  const on = refTo('dcim.device', row.fields.device, place.index)
  const { vcpus, memory, disk } = row.fields
  const cores = Number(vcpus ?? 0)
  // Since NetBox 4.1, which also introduced the serial, disks are in MB instead of GB.
  const disk_gib = 'serial' in row.fields ? Number(disk ?? 0) / 1000 : Number(disk ?? 0)
  return {
    type_key: 'infra.virtual_machine',
    lifecycle_status: lifecycleOf(row),
    ...containerOf(at ? idOf(at) : siteOf(row, place), place),
    desired_state: some({
      hostname: nameOf(row).slice(0, 253),
      cpu_cores: positiveOf(Math.ceil(cores)),
      memory_mib: positiveOf(memory),
      disk_gib: positiveOf(Math.ceil(disk_gib)),
    }),
    relationships: on ? [{ type_key: 'hosted_on', target_external_id: idOf(on) }] : [],
    read: [
      'name',
      ...(at ? ['cluster'] : []),
      ...(on ? ['device'] : []),
      ...(Number.isInteger(cores) ? ['vcpus'] : []),
      ...(positiveOf(memory) === undefined ? [] : ['memory']),
      ...(Number.isInteger(disk_gib) ? ['disk'] : []),
    ],
    refs: { role: 'dcim.devicerole' },
  }
}

const MAC = /^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$/

/** An interface below its device or machine, with its addresses and the real ends of its cable. */
export const networkPort = (row: Row, model: string, member: string, place: Place): Draft | undefined => {
  const owner = refTo(model, row.fields[member], place.index)
  if (!owner) return undefined
  const { mac_address, primary_mac_address, type, enabled, speed } = row.fields
  const primary = refTo('dcim.macaddress', primary_mac_address, place.index)
  const mac = textOf(mac_address) ?? textOf(primary?.fields.mac_address)
  const addresses = place.addresses.get(idOf(row)) ?? []
  const kind = textOf(type)
  const mbps = typeof speed === 'number' && speed >= 1000 ? speed / 1000 : undefined
  return {
    type_key: 'infra.interface',
    parent_external_id: idOf(owner),
    desired_state: some({
      kind: kind?.slice(0, 63),
      mac: mac !== undefined && MAC.test(mac) ? mac : undefined,
      enabled: typeof enabled === 'boolean' ? enabled : undefined,
      speed_mbps: mbps === undefined ? undefined : Math.floor(mbps),
      addresses: addresses.length > 0 ? addresses.slice(0, 64) : undefined,
    }),
    relationships: (place.links.get(idOf(row)) ?? []).map((id) => ({
      type_key: 'connects_to',
      target_external_id: id,
    })),
    read: [
      'name',
      member,
      ...(kind !== undefined && kind.length <= 63 ? ['type'] : []),
      ...(textOf(mac_address) === undefined || MAC.test(String(mac_address)) ? ['mac_address'] : []),
      ...(typeof enabled === 'boolean' ? ['enabled'] : []),
      ...(mbps !== undefined && Number.isInteger(mbps) ? ['speed'] : []),
    ],
  }
}
