import type { ResourceRow } from '../api/types.ts'
import type { Column } from '../ui/table.tsx'
import { ResourceLink } from '../values/links.tsx'
import { tCatalog } from '../words/catalog.ts'

/** Columns that tables of resources share. */
export const NAME: Column<Pick<ResourceRow, 'resource_id' | 'display_name' | 'name'>> = {
  name: tCatalog.resources.name,
  kind: 'lead',
  cell: ({ resource_id, display_name, name }) => (
    <ResourceLink id={resource_id} data-row="" className="font-medium wrap-anywhere">
      {display_name || name}
    </ResourceLink>
  ),
}
export const PLACE: Column<{ scope: { region_id: string | null; datacenter_id: string | null } }> = {
  name: tCatalog.resources.place,
  className: 'whitespace-nowrap',
  cell: ({ scope }) => [scope.region_id, scope.datacenter_id].filter((place) => place !== null).join(' / '),
}
