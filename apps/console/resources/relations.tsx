import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Resource, ResourceRelation } from '../api/types.ts'
import { neighbors } from '../pictures/branches.ts'
import { PictureView } from '../pictures/view.tsx'
import { relationsQuery } from '../queries/resources.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { PictureChoice, type PictureOrTable, usePicture } from './view.tsx'

/** The neighbors of a resource: as a picture to move through, or as a table. */
export const Relations = ({ resource, view }: { resource: Resource; view: PictureOrTable }) => {
  const list = useQuery(relationsQuery(resource.resource_id))
  const items = list.data?.items
  const branches = useMemo(() => neighbors(items ?? []), [items])
  const drawn = usePicture(view)
  return (
    <>
      <PictureChoice drawn={drawn} />
      {list.data?.next_page_token ? <p className="text-wait">{tCatalog.picture.partial}</p> : null}
      {drawn && items !== undefined && items.length > 0 ? (
        <PictureView
          label={tCatalog.picture.neighbors(resource.name)}
          about={resource}
          branches={branches}
          tab="relations"
          arrows
        />
      ) : (
        <ListTable
          list={list}
          empty={tCatalog.resource.no_relations}
          caption={tCatalog.resource.tabs.relations}
          columns={RELATIONS}
          rows={items ?? []}
          keyOf={({ relationship }) => relationship.relationship_id}
        />
      )}
    </>
  )
}

const RELATIONS: Column<ResourceRelation>[] = [
  {
    name: tCatalog.resource.relation,
    cell: ({ relationship, direction }) =>
      `${relationship.type_key.replaceAll('_', ' ')} (${tCatalog.resource[direction]})`,
  },
  {
    name: tCatalog.resource.peer,
    kind: 'lead',
    cell: ({ peer }) => (
      <ResourceLink id={peer.resource_id} data-row="">
        {peer.name}
      </ResourceLink>
    ),
  },
  { name: tCatalog.resources.type, className: 'mono', cell: ({ peer }) => peer.type_key },
  { name: tCatalog.resources.health, cell: ({ peer }) => <Health health={peer.health_status} /> },
]
