/** How the rows of one model become items. Unlisted fields are kept as they are. */
export type Model = {
  type: string
  /** The field whose row contains the item; the first whose row is in the file counts. */
  in?: readonly string[]
  /** Fields that are members of the type, by NetBox's name or by ours. */
  members?: Record<string, string>
  /** Which model a field names, if REFS does not say so. */
  refs?: Record<string, string>
  /** State that is the same for all rows. */
  state?: Record<string, unknown>
  /** The fields that give the name, if it is not `name`. */
  name?: readonly string[]
}

const own = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, name]))
const COLOR = own('color')
const PORT = own('type', 'label', 'mark_connected')
const port = (type: string, members = {}): Model => ({
  type,
  in: ['module', 'device'],
  members: { ...PORT, ...members },
})
const template = (kind: string): Model => ({
  type: 'dcim.port_template',
  in: ['device_type', 'module_type'],
  members: own('type', 'label'),
  state: { kind },
})

/** Which model a field of any row names. */
export const REFS: Record<string, string> = {
  account: 'circuits.provideraccount',
  asns: 'ipam.asn',
  assigned_vlan: 'ipam.vlan',
  cable: 'dcim.cable',
  circuit: 'circuits.circuit',
  cluster: 'virtualization.cluster',
  contact: 'tenancy.contact',
  device: 'dcim.device',
  device_type: 'dcim.devicetype',
  export_targets: 'ipam.routetarget',
  import_targets: 'ipam.routetarget',
  installed_device: 'dcim.device',
  location: 'dcim.location',
  manufacturer: 'dcim.manufacturer',
  master: 'dcim.device',
  module: 'dcim.module',
  module_bay: 'dcim.modulebay',
  module_type: 'dcim.moduletype',
  nat_inside: 'ipam.ipaddress',
  oob_ip: 'ipam.ipaddress',
  platform: 'dcim.platform',
  power_panel: 'dcim.powerpanel',
  power_port: 'dcim.powerport',
  primary_ip4: 'ipam.ipaddress',
  primary_ip6: 'ipam.ipaddress',
  primary_mac_address: 'dcim.macaddress',
  provider: 'circuits.provider',
  provider_account: 'circuits.provideraccount',
  provider_network: 'circuits.providernetwork',
  rack: 'dcim.rack',
  rear_port: 'dcim.rearport',
  region: 'dcim.region',
  rir: 'ipam.rir',
  site: 'dcim.site',
  tagged_vlans: 'ipam.vlan',
  tenant: 'tenancy.tenant',
  termination_a: 'circuits.circuittermination',
  termination_z: 'circuits.circuittermination',
  untagged_vlan: 'ipam.vlan',
  virtual_chassis: 'dcim.virtualchassis',
  virtual_machine: 'virtualization.virtualmachine',
  vlan: 'ipam.vlan',
  vrf: 'ipam.vrf',
}

/** Models with their own type. Those that need more than this table are in devices.ts and places.ts. */
export const MODELS: Record<string, Model> = {
  'extras.tag': { type: 'dcim.tag', members: COLOR },
  'dcim.region': { type: 'topology.region', members: { slug: 'code' }, refs: { parent: 'dcim.region' } },
  'dcim.sitegroup': { type: 'dcim.site_group', in: ['parent'], refs: { parent: 'dcim.sitegroup' } },
  'dcim.location': {
    type: 'dcim.location',
    in: ['parent', 'site'],
    members: own('facility'),
    refs: { parent: 'dcim.location' },
  },
  'dcim.rackrole': { type: 'dcim.rack_role', members: COLOR },
  'dcim.rackreservation': { type: 'dcim.rack_reservation', in: ['rack'], members: own('units'), name: ['description'] },
  'dcim.manufacturer': { type: 'dcim.manufacturer' },
  'dcim.devicetype': {
    type: 'dcim.device_type',
    in: ['manufacturer'],
    name: ['model'],
    members: {
      ...own('part_number', 'weight', 'weight_unit', 'airflow', 'subdevice_role'),
      u_height: 'height_u',
      is_full_depth: 'full_depth',
    },
  },
  'dcim.moduletype': {
    type: 'dcim.module_type',
    in: ['manufacturer'],
    name: ['model'],
    members: own('part_number', 'weight', 'weight_unit', 'airflow'),
  },
  'dcim.platform': { type: 'dcim.platform' },
  'dcim.devicerole': {
    type: 'dcim.device_role',
    members: own('color', 'vm_role'),
    refs: { parent: 'dcim.devicerole' },
  },
  'dcim.consoleport': port('dcim.console_port'),
  'dcim.consoleserverport': port('dcim.console_server_port'),
  'dcim.powerport': port('dcim.power_port', own('maximum_draw', 'allocated_draw')),
  'dcim.poweroutlet': port('dcim.power_outlet', own('feed_leg')),
  'dcim.frontport': port('dcim.front_port', own('color', 'rear_port_position')),
  'dcim.rearport': port('dcim.rear_port', own('color', 'positions')),
  'dcim.consoleporttemplate': template('console'),
  'dcim.consoleserverporttemplate': template('console server'),
  'dcim.powerporttemplate': template('power port'),
  'dcim.poweroutlettemplate': { ...template('power outlet'), refs: { power_port: 'dcim.powerporttemplate' } },
  'dcim.interfacetemplate': { ...template('interface'), refs: { bridge: 'dcim.interfacetemplate' } },
  'dcim.frontporttemplate': { ...template('front'), refs: { rear_port: 'dcim.rearporttemplate' } },
  'dcim.rearporttemplate': template('rear'),
  'dcim.devicebaytemplate': template('device bay'),
  'dcim.modulebaytemplate': template('module bay'),
  'dcim.devicebay': { type: 'dcim.bay', in: ['device'], members: own('label'), state: { kind: 'device' } },
  'dcim.modulebay': { type: 'dcim.bay', in: ['device'], members: own('label', 'position'), state: { kind: 'module' } },
  'dcim.module': { type: 'dcim.module', in: ['module_bay', 'device'], members: own('serial', 'asset_tag') },
  'dcim.inventoryitem': {
    type: 'dcim.inventory_item',
    in: ['parent', 'device'],
    members: { ...own('label', 'serial', 'asset_tag', 'discovered'), part_id: 'part_number' },
    refs: { parent: 'dcim.inventoryitem', role: 'dcim.inventoryitemrole' },
  },
  'dcim.virtualchassis': { type: 'dcim.virtual_chassis', members: own('domain') },
  'dcim.macaddress': {
    type: 'dcim.mac_address',
    in: ['assigned_object'],
    name: ['mac_address'],
    members: own('mac_address'),
  },
  'dcim.cable': {
    type: 'dcim.cable',
    name: ['label'],
    members: own('type', 'label', 'color', 'length', 'length_unit'),
  },
  'dcim.powerpanel': { type: 'dcim.power_panel', in: ['location', 'site'] },
  'dcim.powerfeed': {
    type: 'dcim.power_feed',
    in: ['power_panel'],
    members: own('type', 'supply', 'phase', 'voltage', 'amperage', 'max_utilization', 'available_power'),
  },
  'virtualization.clustertype': { type: 'dcim.cluster_type' },
  'virtualization.clustergroup': { type: 'dcim.cluster_group' },
  'circuits.provider': { type: 'circuits.provider' },
  'circuits.provideraccount': {
    type: 'circuits.provider_account',
    in: ['provider'],
    name: ['name', 'account'],
    members: own('account'),
  },
  'circuits.providernetwork': { type: 'circuits.provider_network', in: ['provider'], members: own('service_id') },
  'circuits.circuittype': { type: 'circuits.circuit_type', members: COLOR },
  'circuits.circuit': {
    type: 'circuits.circuit',
    in: ['provider'],
    name: ['cid'],
    members: own('cid', 'install_date', 'termination_date', 'commit_rate'),
    refs: { type: 'circuits.circuittype' },
  },
  'circuits.circuittermination': {
    type: 'circuits.termination',
    in: ['circuit'],
    name: ['term_side'],
    members: own('term_side', 'port_speed', 'upstream_speed', 'xconnect_id', 'pp_info', 'mark_connected'),
  },
  'tenancy.tenantgroup': { type: 'tenancy.tenant_group', in: ['parent'], refs: { parent: 'tenancy.tenantgroup' } },
  'tenancy.tenant': { type: 'tenancy.tenant', in: ['group'], refs: { group: 'tenancy.tenantgroup' } },
  'tenancy.contactgroup': { type: 'tenancy.contact_group', in: ['parent'], refs: { parent: 'tenancy.contactgroup' } },
  'tenancy.contactrole': { type: 'tenancy.contact_role' },
  'tenancy.contact': {
    type: 'tenancy.contact',
    in: ['group'],
    members: own('title', 'phone', 'email', 'address', 'link'),
    refs: { group: 'tenancy.contactgroup', groups: 'tenancy.contactgroup' },
  },
  'tenancy.contactassignment': {
    type: 'tenancy.contact_assignment',
    in: ['contact'],
    members: own('priority'),
    refs: { role: 'tenancy.contactrole' },
  },
  'ipam.rir': { type: 'ipam.rir', members: own('is_private') },
  'ipam.aggregate': { type: 'ipam.aggregate', in: ['rir'], name: ['prefix'], members: own('prefix', 'date_added') },
  'ipam.asn': { type: 'ipam.asn', name: ['asn'], members: own('asn') },
  'ipam.asnrange': { type: 'ipam.asn_range', members: own('start', 'end') },
  'ipam.role': { type: 'ipam.role', members: own('weight') },
  'ipam.vrf': { type: 'ipam.vrf', members: own('rd', 'enforce_unique') },
  'ipam.routetarget': { type: 'ipam.route_target' },
  'ipam.prefix': {
    type: 'ipam.prefix',
    in: ['site', 'scope'],
    name: ['prefix'],
    members: own('prefix', 'is_pool', 'mark_utilized'),
    refs: { role: 'ipam.role' },
  },
  'ipam.iprange': {
    type: 'ipam.ip_range',
    name: ['start_address', 'end_address'],
    members: own('start_address', 'end_address', 'size', 'mark_utilized'),
    refs: { role: 'ipam.role' },
  },
  'ipam.ipaddress': {
    type: 'ipam.ip_address',
    in: ['assigned_object'],
    name: ['address'],
    members: own('address', 'dns_name', 'role'),
  },
  'ipam.vlangroup': { type: 'ipam.vlan_group', in: ['scope'], members: own('min_vid', 'max_vid') },
  'ipam.fhrpgroup': { type: 'ipam.fhrp_group', name: ['name', 'protocol'], members: own('group_id', 'protocol') },
  'ipam.service': {
    type: 'ipam.service',
    in: ['device', 'virtual_machine'],
    members: own('protocol', 'ports'),
    refs: { ipaddresses: 'ipam.ipaddress' },
  },
}
