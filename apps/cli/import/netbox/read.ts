import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { collect } from '../collect.ts'
import { type Reader, textOf } from '../items.ts'
import { type Cables, cablesOf, isPanelPort } from './cables.ts'
import { cluster, device, machine, networkPort } from './devices.ts'
import { type Draft, finish, type Place, partOf, plain } from './item.ts'
import { rack, site, vlan } from './places.ts'
import { type Index, idOf, indexOf, isOwn, type Row, rowsOf } from './rows.ts'

/** Drafts the item of a row; `undefined` if its container is not in the file. */
type Rule = (row: Row, place: Place) => Draft | undefined

/**
 * Reads a NetBox export (catalog.md 13): rows of `dumpdata`, or endpoints with rows of its API. Every row becomes an
 * item with all its fields; the ledger lists everything that is in no item. Secrets are never read.
 */
export const readNetbox: Reader = (documents, { source, into }) => {
  const index = indexOf(rowsOf(documents))
  const found = collect()
  const cables = cablesOf(index)
  const place: Place = {
    found,
    index,
    cables,
    links: linksOf(index, cables),
    powered: Map.groupBy(
      index.rows.filter(({ model }) => model === 'dcim.powerport'),
      ({ fields }) => String(fields.device),
    ),
    addresses: grouped(index, 'ipam.ipaddress', 'address', ({ fields }) => {
      const kind = index.kindOf(fields.assigned_object_type)
      return kind === undefined ? undefined : `${kind}/${String(fields.assigned_object_id)}`
    }),
    cidrs: grouped(index, 'ipam.prefix', 'prefix', ({ fields }) => textOf(String(fields.vlan ?? ''))),
    source,
    into,
  }
  for (const row of index.rows) {
    found.from(row.model, row.fields)
    const part = partOf(row.model)
    if (part !== undefined) found.skip(row.model, part)
    else if (isOwn(row)) found.skip(row.model, 'accounts, settings and logs of NetBox itself; secrets are never read')
    else {
      const item = itemOf(row, place)
      if (item) found.add(item)
      else found.lose(row.model, 'its container is not in the file')
    }
  }
  return found.done()
}

const itemOf = (row: Row, place: Place): ImportItem | undefined => {
  if (row.model === 'dcim.cable') return cable(row, place)
  const draft = (RULES[row.model] ?? plain)(row, place)
  return draft && finish(row, draft, place)
}

/** The texts of a model's rows, grouped by owner. */
const grouped = ({ rows }: Index, model: string, field: string, keyOf: (row: Row) => string | undefined) => {
  const groups = new Map<string, string[]>()
  for (const row of rows) {
    const [key, text] = [row.model === model ? keyOf(row) : undefined, textOf(row.fields[field])]
    if (key !== undefined && text !== undefined) groups.set(key, [...(groups.get(key) ?? []), text])
  }
  return groups
}

/** Pairs of real cable ends, each reported once: by the end that comes first in the file. */
const linksOf = ({ rows }: Index, cables: Cables): Map<string, string[]> => {
  const links = new Map<string, string[]>()
  const told = new Set<string>()
  for (const row of rows) {
    if (isPanelPort(row) || row.model === 'dcim.cable') continue
    for (const end of cables.realEnds(row)) {
      const pair = [idOf(row), idOf(end)].sort().join(' ')
      if (told.has(pair)) continue
      told.add(pair)
      links.set(idOf(row), [...(links.get(idOf(row)) ?? []), idOf(end)])
    }
  }
  return links
}

const cable = (row: Row, place: Place): ImportItem => {
  const { a, b } = place.cables.endIds(row.pk)
  const sides = new Map<string, string[]>()
  for (const [side, ids] of Object.entries({ a, b }))
    for (const id of ids) sides.set(id, [...(sides.get(id) ?? []), side])
  const item = finish(row, plain(row, place, sides.size > 0 ? ['a_terminations', 'b_terminations'] : []), place)
  return {
    ...item,
    name: textOf(row.fields.label) === undefined ? `Cable ${row.pk}` : item.name,
    relationships: [
      ...(item.relationships ?? []).filter(({ properties }) => !/termination/.test(JSON.stringify(properties))),
      ...[...sides].map(([target_external_id, fields]) => ({
        type_key: 'refers_to',
        target_external_id,
        properties: { fields },
      })),
    ],
  }
}

const vmPort: Rule = (row, place) => networkPort(row, 'virtualization.virtualmachine', 'virtual_machine', place)

const RULES: Record<string, Rule> = {
  'dcim.site': site,
  'ipam.vlan': vlan,
  'dcim.rack': rack,
  'dcim.device': device,
  'virtualization.cluster': cluster,
  'virtualization.virtualmachine': machine,
  'dcim.interface': (row, place) => networkPort(row, 'dcim.device', 'device', place),
  'virtualization.vminterface': vmPort,
  // The API's name for the model.
  'virtualization.interface': vmPort,
}
