import { describe, expect, it } from 'vitest'
import { type Found, isEmpty } from '../../apps/cli/import/items.ts'
import { MODELS } from '../../apps/cli/import/netbox/mapping.ts'
import { readNetbox } from '../../apps/cli/import/netbox/read.ts'
import { parseSource } from '../../apps/cli/import/source.ts'
import { NETBOX } from './netbox.ts'

const read = (rows: unknown): Found =>
  readNetbox(parseSource(typeof rows === 'string' ? rows : JSON.stringify(rows)).documents, {
    source: 'src',
    into: undefined,
  })
const left = ({ ledger }: Found) => Object.fromEntries(ledger.leftOut().map(({ kind, count }) => [kind, count]))
const fate = ({ ledger }: Found, name: string) =>
  ledger
    .fields()
    .filter((one) => one.fate === name)
    .map(({ kind, field }) => `${kind} ${field}`)

describe('an export with every model', () => {
  const found = read(NETBOX)
  const byId = new Map(found.items.map((item) => [item.external_id, item]))
  const item = (id: string) => byId.get(id)
  const refs = (id: string) =>
    Object.fromEntries(
      (item(id)?.relationships ?? []).map(({ target_external_id, type_key, properties }) => [
        target_external_id,
        properties === undefined ? type_key : String(properties.fields),
      ]),
    )

  it('has a row of each model that has a type', () => {
    const there = new Set(NETBOX.map(({ model }) => model))
    expect(Object.keys(MODELS).filter((model) => !there.has(model))).toEqual([
      'dcim.consoleserverporttemplate',
      'dcim.macaddress',
    ])
    expect([...found.generic.keys()].sort()).toEqual(['extras.customfield', 'wireless.wirelesslan'])
  })

  it('loses no field: each value is in the item, in an edge of it, or named', () => {
    expect(fate(found, 'lost')).toEqual([])
    expect(fate(found, 'withheld')).toEqual([
      'ipam.fhrpgroup auth_key',
      'ipam.fhrpgroup auth_password',
      'wireless.wirelesslan auth_psk',
    ])
    expect(JSON.stringify(found.items)).not.toContain('hunter2')
    expect(left(found)).toEqual({
      'contenttypes.contenttype': 1,
      'auth.user': 1,
      'extras.taggeditem': 2,
      'dcim.cabletermination': 12,
      'dcim.cablepath': 1,
    })
    const named = new Set([...fate(found, 'computed'), ...fate(found, 'withheld')])
    for (const { model, pk, fields } of NETBOX as { model: string; pk?: number; fields: Record<string, unknown> }[]) {
      if (model in left(found)) continue
      const whole = JSON.stringify([
        item(`${model}/${pk}`),
        [...byId.values()].filter((one) => one.external_id === `${model}/${pk}`),
      ])
      for (const [field, value] of Object.entries(fields)) {
        if (isEmpty(value) || named.has(`${model} ${field}`) || /^cable/.test(field)) continue
        for (const part of [value].flat())
          if (typeof part !== 'object' && typeof part !== 'boolean' && !/_(type|id)$/.test(field))
            expect(whole, `${model}/${pk} ${field}`).toContain(
              JSON.stringify(part)
                .slice(1, -1)
                .replace(/\.?0+$/, ''),
            )
      }
    }
  })

  it('traces cables through two patch panels, by the position of the strand, to the real ends', () => {
    expect(refs('dcim.interface/1')['dcim.interface/2']).toBe('connects_to')
    expect(refs('dcim.interface/3')).toMatchObject({
      'circuits.circuittermination/1': 'connects_to',
      'dcim.interface/1': 'lag',
    })
    expect(refs('dcim.powerport/1')['dcim.poweroutlet/1']).toBe('connects_to')
    expect(refs('dcim.device/2')['dcim.device/5']).toBe('depends_on')
    expect(refs('dcim.device/5')['dcim.powerfeed/1']).toBe('depends_on')
    expect(refs('dcim.cable/2')).toEqual({ 'dcim.rearport/1': 'a', 'dcim.rearport/2': 'b' })
    expect(item('dcim.cable/2')?.desired_state).toMatchObject({
      type: 'smf',
      color: 'ffeb3b',
      length: 2.5,
      length_unit: 'm',
    })
    const pairs = found.items.flatMap(({ relationships = [] }) =>
      relationships.filter(({ type_key }) => type_key === 'connects_to'),
    )
    expect(pairs).toHaveLength(4)
  })

  it('stops at the panel where the path ends', () => {
    const without = NETBOX.filter(
      ({ model, pk, fields }: { model: string; pk?: number; fields: object }) =>
        !(model === 'dcim.cable' && pk === 2) &&
        !(model === 'dcim.cabletermination' && 'cable' in fields && fields.cable === 2),
    ).map((row) =>
      row.model === 'dcim.rearport' ? { ...row, fields: { ...row.fields, cable: null, cable_end: '' } } : row,
    )
    const edges = read(without).items.find(({ external_id }) => external_id === 'dcim.interface/1')?.relationships
    expect(edges).toContainEqual({ type_key: 'connects_to', target_external_id: 'dcim.frontport/1' })
  })

  it('maps places, addresses and VLANs to the types that the catalog has', () => {
    expect(item('dcim.site/1')).toMatchObject({
      type_key: 'topology.datacenter',
      parent_external_id: 'dcim.region/2',
      desired_state: { code: 'berlin', address: 'Straße 1', geo: { lat: 52.52, lon: 13.4 } },
      annotations: { 'netbox.dev/facility': 'Hall 4' },
    })
    expect(refs('dcim.site/1')).toMatchObject({
      'tenancy.tenant/1': 'tenant',
      'ipam.asn/1': 'asns',
      'dcim.sitegroup/1': 'group',
    })
    expect(refs('dcim.region/2')).toEqual({ 'dcim.region/1': 'parent' })
    expect(item('ipam.vlan/1')).toMatchObject({
      type_key: 'topology.segment',
      parent_external_id: 'layer/1/network',
      desired_state: { vlan: 10, cidrs: ['10.1.0.0/24'] },
    })
    expect(item('ipam.vlan/2')).toMatchObject({ parent_external_id: 'layer/none/network' })
    expect(item('dcim.interface/1')).toMatchObject({
      type_key: 'infra.interface',
      desired_state: { kind: '10gbase-x', addresses: ['10.1.0.1/24'], speed_mbps: 10_000 },
      annotations: { 'netbox.dev/mtu': '9000' },
    })
    expect(refs('dcim.interface/1')).toMatchObject({
      'ipam.vlan/1': 'untagged_vlan',
      'ipam.vlan/2': 'tagged_vlans',
      'ipam.vrf/1': 'vrf',
    })
    expect(item('ipam.ipaddress/1')).toMatchObject({
      type_key: 'ipam.ip_address',
      parent_external_id: 'dcim.interface/1',
    })
    expect(refs('ipam.vrf/1')).toMatchObject({ 'ipam.routetarget/1': 'import_targets,export_targets' })
    const [first, second] = [item('ipam.prefix/1'), item('ipam.prefix/2')]
    expect([first?.name, second?.name, second?.display_name]).toEqual([
      '10.1.0.0/24',
      '10.1.0.0/24 (ipam.prefix/2)',
      '10.1.0.0/24',
    ])
  })

  it('keeps tags as labels, custom fields and everything else of a device', () => {
    const device = item('dcim.device/1')
    expect(device).toMatchObject({
      type_key: 'infra.network_device',
      lifecycle_status: 'planned',
      parent_external_id: 'dcim.rack/1',
    })
    const long = Object.keys(device?.labels ?? {}).find((key) => key.startsWith('netbox.dev/tag-long')) ?? ''
    expect(long.length).toBeLessThanOrEqual(74)
    expect(device?.labels).toMatchObject({ 'netbox.dev/tag-critical': '', 'netbox.dev/status': 'planned' })
    expect(device?.annotations).toMatchObject({
      [long]: `long-${'x'.repeat(80)}`,
      'netbox.dev/asset_tag': 'A-1',
      'netbox.dev/serial': 'SN1',
      'netbox.dev/position': '4.0',
      'netbox.dev/cf-owner_mail': 'ops@x.example',
      'netbox.dev/local_context_data': '{"ntp":["a","b"]}',
    })
    expect(item('tenancy.tenant/1')?.desired_state).toMatchObject({
      slug: 'acme',
      comments: 'A **note**',
      attributes: { custom_fields: { cust_id: 'ABC12', sizes: { racks: 2 } } },
    })
    expect(item('virtualization.virtualmachine/1')).toMatchObject({
      desired_state: { cpu_cores: 2 },
      annotations: { 'netbox.dev/vcpus': '1.50' },
    })
  })

  it('names an unknown field: it is kept if there is room, and lost otherwise', () => {
    const planted = read([
      { model: 'ipam.vrf', pk: 1, fields: { name: 'red', shade: 'dark' } },
      { model: 'dcim.region', pk: 1, fields: { name: 'EU', slug: 'eu', essay: 'x'.repeat(40_000) } },
      { model: 'dcim.interface', pk: 1, fields: { name: 'eth0', device: 9 } },
    ])
    expect(fate(planted, 'untyped')).toEqual(['ipam.vrf shade'])
    expect(planted.ledger.fields().filter((one) => one.fate === 'lost')).toEqual([
      {
        fate: 'lost',
        kind: 'dcim.region',
        field: 'essay',
        reason: 'annotations have no room for its bytes',
        count: 1,
        example: 'dcim.region/1',
      },
    ])
    expect(planted.ledger.leftOut()).toEqual([
      { kind: 'dcim.interface', reason: 'its container is not in the file', lost: true, count: 1 },
    ])
  })
})

describe('forms of exports', () => {
  it('rows of a type without pk are left out, devices get the layer of their role, secrets are not read', () => {
    const found = read([
      { model: 'contenttypes.contenttype', fields: { app_label: 'dcim', model: 'site' } },
      { model: 'dcim.site', pk: 1, fields: { name: 'Berlin', slug: 'berlin' } },
      { model: 'dcim.devicerole', pk: 1, fields: { name: 'Core Switch' } },
      { model: 'dcim.device', pk: 7, fields: { name: 'sw1', site: 1, device_role: 1, status: 'planned' } },
      { model: 'dcim.manufacturer', pk: 2, fields: { name: 'Acme' } },
      { model: 'netbox_secrets.secret', pk: 2, fields: { name: 'root', ciphertext: 'hunter2' } },
    ])
    expect(found.items.map(({ external_id, type_key }) => [external_id, type_key])).toEqual([
      ['region/none', 'topology.region'],
      ['dcim.site/1', 'topology.datacenter'],
      ['inventory/src', 'dcim.inventory'],
      ['dcim.devicerole/1', 'dcim.device_role'],
      ['layer/1/core_switch', 'topology.layer'],
      ['dcim.device/7', 'infra.network_device'],
      ['dcim.manufacturer/2', 'dcim.manufacturer'],
    ])
    expect(found.items[5]).toMatchObject({ parent_external_id: 'layer/1/core_switch', lifecycle_status: 'planned' })
    expect(JSON.stringify(found.items)).not.toContain('hunter2')
    const rest = read({ 'dcim/sites': [{ id: 3, name: 'Oslo', status: { value: 'active' } }] })
    expect(rest.items.map(({ external_id }) => external_id)).toEqual(['region/none', 'dcim.site/3'])
  })

  it('a reference of the API to a row that is not in the file keeps the copy of that row', () => {
    const site = {
      id: 1,
      url: 'https://nb.example/api/dcim/sites/1/',
      display: 'Berlin',
      name: 'Berlin',
      slug: 'berlin',
    }
    const type = { id: 7, url: 'https://nb.example/api/dcim/device-types/7/', model: 'R650', slug: 'r650' }
    const rows = {
      'dcim/sites': [{ id: 1, name: 'Berlin', region: { id: 5, url: '/api/dcim/regions/5/', name: 'Far away' } }],
      'dcim/devices': [{ id: 1, name: 'd1', site, device_type: type, asset_tag: 'big' }],
    }
    const { items } = read(JSON.stringify(rows).replace('"big"', '12345678901234567890'))
    const item = (id: string) => items.find(({ external_id }) => external_id === id)
    expect(item('dcim.site/1')?.annotations).toMatchObject({ 'netbox.dev/region': '{"id":5,"name":"Far away"}' })
    expect(item('dcim.device/1')).toMatchObject({
      parent_external_id: 'layer/1/other',
      annotations: {
        'netbox.dev/device_type': '{"id":7,"model":"R650","slug":"r650"}',
        'netbox.dev/asset_tag': '12345678901234567890',
      },
    })
  })

  it('formats of NetBox 4: scopes, cable ends, separate addresses, disks in MB', () => {
    const port = (id: number, device: number, cable_end: string, cable = 1) => ({
      id,
      name: `p${id}`,
      device: { id: device },
      cable: { id: cable },
      cable_end,
    })
    const device = (id: number, role: number) => ({ id, name: `d${id}`, site: { id: 1 }, role: { id: role } })
    const { items } = read({
      'dcim/sites': [{ id: 1, name: 'Berlin' }],
      'dcim/device-roles': [
        { id: 1, name: 'Server' },
        { id: 2, name: 'PDU' },
      ],
      'dcim/devices': [device(1, 1), device(2, 1), device(3, 2)],
      'dcim/interfaces': [{ ...port(1, 1, 'A'), primary_mac_address: { id: 9 } }, port(2, 2, 'B')],
      'dcim/mac-addresses': [
        { id: 9, mac_address: '00:11:22:33:44:55' },
        {
          id: 10,
          mac_address: '00:11:22:33:44:66',
          assigned_object_type: 'virtualization.vminterface',
          assigned_object_id: 5,
        },
      ],
      'dcim/power-ports': [port(3, 1, 'B', 2)],
      'dcim/power-outlets': [port(4, 3, 'A', 2)],
      'ipam/vlan-groups': [{ id: 5, name: 'g', scope_type: 'dcim.site', scope_id: 1 }],
      'ipam/vlans': [{ id: 6, name: 'v', vid: 10, group: { id: 5 } }],
      'ipam/prefixes': [{ id: 8, prefix: '10.0.0.0/8' }],
      'virtualization/clusters': [{ id: 7, name: 'c', scope_type: 'dcim.site', scope_id: 1 }],
      'virtualization/virtual-machines': [
        { id: 1, name: 'new', cluster: { id: 7 }, disk: 20_480, serial: '' },
        { id: 2, name: 'old', cluster: { id: 7 }, disk: 20 },
      ],
      'virtualization/interfaces': [
        { id: 5, name: 'eth0', virtual_machine: { id: 1 }, primary_mac_address: { id: 10 } },
      ],
      'ipam/ip-addresses': [
        { id: 11, address: '10.0.0.1/24', assigned_object_type: 'virtualization.vminterface', assigned_object_id: 5 },
      ],
    })
    const byId = new Map(items.map((item) => [item.external_id, item]))
    expect(byId.get('dcim.interface/1')).toMatchObject({
      desired_state: { mac: '00:11:22:33:44:55' },
      relationships: expect.arrayContaining([{ type_key: 'connects_to', target_external_id: 'dcim.interface/2' }]),
    })
    expect(byId.get('dcim.interface/2')?.relationships).toEqual([])
    expect(byId.get('dcim.device/1')?.relationships).toContainEqual({
      type_key: 'depends_on',
      target_external_id: 'dcim.device/3',
    })
    expect(byId.get('ipam.vlan/6')).toMatchObject({ type_key: 'topology.segment', desired_state: { vlan: 10 } })
    expect(byId.get('virtualization.cluster/7')).toMatchObject({ parent_external_id: 'dcim.site/1' })
    expect(byId.get('virtualization.interface/5')).toMatchObject({
      type_key: 'infra.interface',
      parent_external_id: 'virtualization.virtualmachine/1',
      desired_state: { mac: '00:11:22:33:44:66', addresses: ['10.0.0.1/24'] },
    })
    for (const id of ['ipam.ipaddress/11', 'dcim.macaddress/10'])
      expect(byId.get(id)).toMatchObject({ parent_external_id: 'virtualization.interface/5' })
    const disks = [1, 2].map((id) => byId.get(`virtualization.virtualmachine/${id}`)?.desired_state?.disk_gib)
    expect(disks).toEqual([21, 20])
    expect([...byId.keys()].filter((id) => id.startsWith('ipam.prefix/'))).toEqual(['ipam.prefix/8'])
  })
})
