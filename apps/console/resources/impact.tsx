import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Impact, Resource } from '../api/types.ts'
import { Choices } from '../forms/choices.tsx'
import { affected } from '../pictures/branches.ts'
import { PictureView } from '../pictures/view.tsx'
import { type Assumption, impactQuery } from '../queries/resources.ts'
import { Card } from '../ui/card.tsx'
import { type Column, DataTable, ListTable } from '../ui/table.tsx'
import { Behind } from '../values/behind.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { PictureChoice, type PictureOrTable, usePicture } from './view.tsx'

type ImpactProps = { resource: Resource; view: PictureOrTable; asked: string | undefined }
const assumptionOf = (asked: string | undefined): Assumption =>
  asked === 'gone' || asked === 'maintenance' ? asked : 'unhealthy'

/** The resources that depend on one, transitively: as a picture of the paths that a failure takes, or as a table. */
export const ResourceImpact = ({ resource, view, asked }: ImpactProps) => {
  const assume = assumptionOf(asked)
  const navigate = useNavigate()
  const list = useQuery(impactQuery(resource.resource_id, assume))
  const impact = list.data
  const branches = useMemo(() => (impact ? affected(impact) : undefined), [impact])
  const drawn = usePicture(view)
  return (
    <>
      <Choices
        label={tCatalog.impact.assume}
        choices={tCatalog.impact.assumptions}
        chosen={assume}
        choose={(choice) =>
          void navigate({
            to: '.',
            search: (before: object) => ({ ...before, assume: choice === 'unhealthy' ? undefined : choice }),
          })
        }
      />
      <Behind replies={[impact]} />
      {impact ? <Summary impact={impact} /> : null}
      {impact?.without ? <Without without={impact.without} /> : null}
      {assume === 'maintenance' ? null : <PictureChoice drawn={drawn} />}
      {drawn && branches && branches.right.length > 0 ? (
        <PictureView
          label={tCatalog.impact.title(resource.name, assume)}
          about={resource}
          branches={branches}
          tab="impact"
        />
      ) : (
        <ListTable
          list={list}
          empty={assume === 'maintenance' ? tCatalog.impact.healthy : tCatalog.impact.none}
          caption={tCatalog.impact.title(resource.name, assume)}
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

/** The needs that it meets, unmet ones first, and whether its retirement would be refused. */
const Without = ({
  without: { needs, unmet, hidden, cut, prevent_retiring },
}: {
  without: Exclude<Impact['without'], null>
}) => (
  <Card title={tCatalog.impact.without}>
    <p className="p-4">
      {[
        // Those it hides may have needs.
        ...(needs.length > 0 || hidden === 0 ? [tCatalog.impact.unmet(unmet, needs.length)] : []),
        ...(hidden > 0 ? [tCatalog.impact.unseen(hidden)] : []),
        ...(cut ? [tCatalog.impact.first_users] : []),
        tCatalog.impact.prevents(prevent_retiring),
      ].join(' ')}
    </p>
    {needs.length === 0 ? null : (
      <DataTable
        caption={tCatalog.impact.without}
        columns={NEEDS}
        rows={needs}
        keyOf={({ resource_id, requirement_key }) => `${resource_id} ${requirement_key}`}
      />
    )}
  </Card>
)

const NEEDS: Column<Exclude<Impact['without'], null>['needs'][number]>[] = [
  {
    name: tCatalog.resource.peer,
    kind: 'lead',
    cell: ({ resource_id, name }) => <ResourceLink id={resource_id}>{name}</ResourceLink>,
  },
  { name: tCatalog.impact.need, className: 'mono', cell: ({ capability_key }) => capability_key },
  {
    name: tCatalog.impact.left,
    cell: ({ left, needed }) => (
      <span className={left < needed ? 'text-bad' : ''}>{tCatalog.impact.of_needed(left, needed)}</span>
    ),
  },
]

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
