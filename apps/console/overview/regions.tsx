import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Overview } from '../../shared/contracts/overview/overview.ts'
import { useTopic } from '../api/hooks.ts'
import { meQuery } from '../queries/me.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { placesQuery } from '../queries/topology.ts'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { t } from '../words/index.ts'
import { tOverview } from '../words/overview.ts'

const words = tOverview.regions
/** Worst first. */
const HEALTHS = ['unhealthy', 'degraded', 'unknown', 'maintenance', 'healthy'] as const

type Region = { region_id: string; name: string; by_health: Record<string, number> } & Pick<
  Overview['regions'][number],
  'open' | 'needs_attention' | 'gates'
>
const QUIET = { open: 0, needs_attention: 0, gates: 0 }

/** Each region at a glance: the health of its resources, open operations, and waiting gates. */
export const Regions = ({ overview }: { overview: Overview }) => {
  const may = useQuery(meQuery()).data?.permissions.includes('catalog:read') ?? false
  const places = useInfiniteQuery({ ...placesQuery('regions', {}), enabled: may })
  useAllPages(places)
  useTopic(may ? 'resources' : '')
  if (!may) return null
  const regions = rowsOf(places).map(({ resource_id, display_name, name, counts }) => ({
    ...{ region_id: resource_id, name: display_name || name, by_health: counts.by_health },
    ...(overview.regions.find(({ region_id }) => region_id === resource_id) ?? QUIET),
  }))
  return (
    <Card title={words.title}>
      <Unread query={places} rows={2} />
      {places.isSuccess && regions.length === 0 ? <p className="p-4 text-muted">{words.none}</p> : null}
      {regions.length > 0 ? (
        <DataTable caption={words.title} columns={COLUMNS} rows={regions} keyOf="region_id" />
      ) : null}
    </Card>
  )
}

const COLUMNS: Column<Region>[] = [
  {
    name: words.columns.region,
    kind: 'lead',
    cell: ({ region_id, name }) => (
      <Link to="/topology" search={{ region: region_id }} data-row="">
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  {
    name: words.columns.health,
    cell: ({ region_id, by_health }) => (
      <ul className="flex flex-wrap gap-x-4">
        {HEALTHS.filter((health) => by_health[health]).map((health) => (
          <li key={health}>
            <Link
              to="/resources"
              search={{ type: '', region: region_id, health, q: '' }}
              className="inline-flex min-h-6 items-center"
            >
              {words.health(by_health[health] ?? 0, t.health[health] ?? health)}
            </Link>
          </li>
        ))}
      </ul>
    ),
  },
  { name: words.columns.open, kind: 'number', cell: ({ open }) => open },
  { name: words.columns.attention, kind: 'number', cell: ({ needs_attention }) => needs_attention },
  { name: words.columns.gates, kind: 'number', cell: ({ gates }) => gates },
]
