import type { ImportItem } from '../../shared/contracts/imports/imports.ts'
import type { Collected } from './collect.ts'

/** The region and data center that a cloud's names refer to, created on first use. */
export const placeOf = (found: Collected, region: string | undefined, zone: string | undefined): string | undefined => {
  if (region === undefined || zone === undefined) return undefined
  const above: ImportItem = {
    external_id: `region/${region}`,
    type_key: 'topology.region',
    name: region,
    desired_state: { code: region },
  }
  const parent_external_id = found.ensure(above)
  return found.ensure({
    external_id: `zone/${region}/${zone}`,
    type_key: 'topology.datacenter',
    name: zone,
    parent_external_id,
    desired_state: { code: zone },
  })
}
