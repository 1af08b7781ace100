import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Impact, Resource } from '../api/types.ts'
import { affected } from '../pictures/branches.ts'
import { PictureView } from '../pictures/view.tsx'
import { impactQuery } from '../queries/resources.ts'
import { type Column, ListTable } from '../ui/table.tsx'
import { Behind } from '../values/behind.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { PictureChoice, type PictureOrTable, usePicture } from './view.tsx'

/** The resources that depend on one, transitively: as a picture of the paths that a failure takes, or as a table. */
export const ResourceImpact = ({ resource, view }: { resource: Resource; view: PictureOrTable }) => {
  const list = useQuery(impactQuery(resource.resource_id))
  const impact = list.data
  const branches = useMemo(() => (impact ? affected(impact) : undefined), [impact])
  const drawn = usePicture(view)
  return (
    <>
      <Behind replies={[impact]} />
      {impact ? <Summary impact={impact} /> : null}
      <PictureChoice drawn={drawn} />
      {drawn && branches && branches.right.length > 0 ? (
        <PictureView label={tCatalog.impact.title(resource.name)} about={resource} branches={branches} tab="impact" />
      ) : (
        <ListTable
          list={list}
          empty={tCatalog.impact.none}
          caption={tCatalog.impact.title(resource.name)}
          columns={COLUMNS}
          rows={impact?.items ?? []}
          keyOf="resource_id"
        />
      )}
    </>
  )
}

const Summary = ({ impact: { counts, truncated, items } }: { impact: Impact }) =>
  counts.total === 0 ? null : (
    <p>
      {[
        tCatalog.impact.sentence(counts.by_effect.unhealthy, counts.by_effect.degraded),
        ...(counts.hidden > 0 ? [tCatalog.impact.hidden(counts.hidden)] : []),
        ...(truncated.visited ? [tCatalog.impact.at_least] : []),
        ...(truncated.items ? [tCatalog.impact.shown(items.length)] : []),
      ].join(' ')}
    </p>
  )

const COLUMNS: Column<Impact['items'][number]>[] = [
  {
    name: tCatalog.resource.peer,
    kind: 'lead',
    cell: ({ resource_id, name }) => (
      <ResourceLink id={resource_id} data-row="">
        {name}
      </ResourceLink>
    ),
  },
  { name: tCatalog.resources.type, className: 'mono', cell: ({ type_key }) => type_key },
  { name: tCatalog.impact.effect, cell: ({ effect }) => <Health health={effect} /> },
  { name: tCatalog.impact.now, cell: ({ health_status }) => <Health health={health_status} /> },
  { name: tCatalog.impact.distance, kind: 'number', cell: ({ distance }) => distance },
  {
    name: tCatalog.impact.path,
    cell: ({ path }) =>
      path
        .map(
          (step) => `${step.relationship_type.replaceAll('_', ' ')} → ${step.resource_id ?? tCatalog.resource.hidden}`,
        )
        .join(', '),
  },
]
