import { useQuery } from '@tanstack/react-query'
import type { Resource } from '../api/types.ts'
import { managersQuery } from '../queries/resources.ts'
import { Card } from '../ui/card.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { TimeText } from '../values/time.tsx'
import { tCatalog } from '../words/catalog.ts'

/** Who manages which fields, by name and since when: an importer, an operation or a person. */
export const Managers = ({ resource_id }: { resource_id: string }) => {
  const { data } = useQuery(managersQuery(resource_id))
  if (!data?.managed_fields?.length) return null
  return (
    <Card title={tCatalog.resource.managers}>
      <DataTable caption={tCatalog.resource.managers} columns={MANAGERS} rows={data.managed_fields} keyOf="path" />
    </Card>
  )
}

type Managed = NonNullable<Resource['managed_fields']>[number]

const MANAGERS: Column<Managed>[] = [
  {
    name: tCatalog.resource.field,
    kind: 'lead',
    className: 'wrap-anywhere',
    cell: ({ path }) => (path === '' ? tCatalog.resource.other_fields : <code>{path}</code>),
  },
  { name: tCatalog.resource.manager, className: 'wrap-anywhere', cell: ({ name }) => <bdi>{name}</bdi> },
  { name: tCatalog.resource.since, cell: ({ since }) => (since === null ? null : <TimeText at={since} form="both" />) },
]
