import { positiveOf, some, textOf } from '../items.ts'
import { type Draft, type Place, pairOf } from './item.ts'
import { idOf, nameOf, type Row, refTo } from './rows.ts'

/** Sites, and the layers, racks and segments in them. */
export const site = (row: Row, place: Place): Draft => {
  const region = refTo('dcim.region', row.fields.region, place.index)
  const { slug, physical_address, latitude, longitude } = row.fields
  const [lat, lon] = [latitude, longitude].map((value) =>
    textOf(value) || typeof value === 'number' ? Number(value) : Number.NaN,
  )
  const geo = Number.isFinite(lat) && Number.isFinite(lon) ? { lat, lon } : undefined
  const code = textOf(slug) ?? nameOf(row)
  const address = textOf(physical_address)
  return {
    type_key: 'topology.datacenter',
    parent_external_id: region ? idOf(region) : noRegion(place),
    desired_state: some({
      code: code.slice(0, 63),
      address: address !== undefined && address.length <= 1000 ? address : undefined,
      geo,
    }),
    read: [
      'name',
      ...(region ? ['region'] : []),
      ...(code.length <= 63 ? ['slug'] : []),
      ...(address !== undefined && address.length <= 1000 ? ['physical_address'] : []),
      ...(geo ? ['latitude', 'longitude'] : []),
    ],
    refs: { group: 'dcim.sitegroup' },
  }
}

const noRegion = ({ found }: Place): string =>
  found.ensure({
    external_id: 'region/none',
    type_key: 'topology.region',
    name: 'No region',
    desired_state: { code: 'none' },
  })

/** The data center for rows that need one but name none. */
export const noSite = (place: Place): string =>
  place.found.ensure({
    external_id: 'site/none',
    type_key: 'topology.datacenter',
    name: 'No site',
    parent_external_id: noRegion(place),
    desired_state: { code: 'none' },
  })

/** The layer of a kind in a site, created on first use. */
export const layerIn = (kind: string, site_id: string, place: Place): string => {
  const layer_kind =
    kind
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '_')
      .replace(/^[^a-z]+/, '')
      .slice(0, 32) || 'other'
  return place.found.ensure({
    external_id: `layer/${site_id.split('/')[1]}/${layer_kind}`,
    type_key: 'topology.layer',
    name: layer_kind,
    parent_external_id: site_id,
    desired_state: { layer_kind },
  })
}

/** The id of a row's site: its own, or that of its scope. */
export const siteOf = (row: Row, place: Place): string | undefined => {
  const own = refTo('dcim.site', row.fields.site ?? row.fields._site, place.index)
  if (own) return idOf(own)
  const scope = pairOf(row.fields, 'scope', place)
  if (scope?.startsWith('dcim.site/')) return scope
  const location = scope?.startsWith('dcim.location/') ? place.index.byId.get(scope) : undefined
  return location ? siteOf(location, place) : undefined
}

export const SITE_FIELDS = (row: Row, place: Place): string[] =>
  refTo('dcim.site', row.fields.site, place.index)
    ? ['site']
    : pairOf(row.fields, 'scope', place)?.startsWith('dcim.site/')
      ? ['scope_type', 'scope_id']
      : []

export const vlan = (row: Row, place: Place): Draft => {
  const group = refTo('ipam.vlangroup', row.fields.group, place.index)
  const at = siteOf(row, place) ?? (group && siteOf(group, place)) ?? noSite(place)
  const number = positiveOf(row.fields.vid)
  const cidrs = place.cidrs.get(row.pk) ?? []
  return {
    type_key: 'topology.segment',
    name: `${nameOf(row)} (${number ?? row.pk})`,
    display_name: nameOf(row),
    parent_external_id: layerIn('network', at, place),
    desired_state: some({ vlan: number, cidrs: cidrs.length > 0 ? cidrs.slice(0, 256) : undefined }),
    read: ['name', ...(number === undefined ? [] : ['vid']), ...SITE_FIELDS(row, place)],
    refs: { group: 'ipam.vlangroup', role: 'ipam.role', qinq_svlan: 'ipam.vlan' },
  }
}

export const rack = (row: Row, place: Place): Draft | undefined => {
  const at = siteOf(row, place)
  if (at === undefined) return undefined
  const location = refTo('dcim.location', row.fields.location, place.index)
  const height_u = positiveOf(row.fields.u_height)
  return {
    type_key: 'infra.rack',
    name: location ? `${nameOf(location)}/${nameOf(row)}` : nameOf(row),
    display_name: nameOf(row),
    parent_external_id: at,
    desired_state: some({ height_u }),
    read: ['name', 'site', ...(height_u === undefined ? [] : ['u_height'])],
    refs: { role: 'dcim.rackrole' },
  }
}
