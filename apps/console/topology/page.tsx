import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import type { Place } from '../api/types.ts'
import { rowsOf } from '../queries/pages.ts'
import { LEVELS, type PlaceLevel, placesQuery, type Within } from '../queries/topology.ts'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'

type Way = { region?: string; datacenter?: string; layer?: string }
const STEPS = ['region', 'datacenter', 'layer'] as const

/** Places one level at a time, from all regions down to the segments of a layer, with their resources. */
export const TopologyPage = () => {
  const way = useSearch({ from: '/shell/topology' })
  useTopic('resources')
  const depth = STEPS.findLastIndex((step) => way[step] !== undefined) + 1
  const level = LEVELS[depth] as PlaceLevel
  const list = useInfiniteQuery(placesQuery(level, withinOf(way, depth)))
  return (
    <Page>
      <Heading title={tCatalog.topology.title}>{tCatalog.topology.title}</Heading>
      {depth > 0 ? <Trail way={way} depth={depth} /> : null}
      <h2 className="card-title">{tCatalog.topology.levels[level]}</h2>
      <ListTable
        list={list}
        empty={tCatalog.topology.empty[level]}
        next={depth === 0 ? <p>{tCatalog.topology.empty_hint}</p> : undefined}
        caption={tCatalog.topology.levels[level]}
        columns={columnsOf(way, depth)}
        rows={rowsOf(list)}
        keyOf={({ resource_id }) => resource_id}
      />
    </Page>
  )
}

/** Only the nearest place filters: it is inside the others. */
const withinOf = (way: Way, depth: number): Within => {
  const step = STEPS[depth - 1]
  return step === undefined ? {} : { [`${step}_id`]: way[step] }
}

const upTo = (way: Way, depth: number): Way =>
  Object.fromEntries(STEPS.slice(0, depth).flatMap((step) => (way[step] === undefined ? [] : [[step, way[step]]])))

const Trail = ({ way, depth }: { way: Way; depth: number }) => (
  <nav aria-label={tCatalog.topology.way}>
    <ol className="flex flex-wrap gap-2">
      <li>
        <Link to="/topology">{tCatalog.topology.levels.regions}</Link>
      </li>
      {STEPS.slice(0, depth).map((step, at) =>
        way[step] === undefined ? null : (
          <li key={step} className="flex gap-2">
            <span aria-hidden="true">/</span>
            <Link to="/topology" search={upTo(way, at + 1)} aria-current={at === depth - 1 ? 'page' : undefined}>
              {way[step]}
            </Link>
          </li>
        ),
      )}
    </ol>
  </nav>
)

const columnsOf = (way: Way, depth: number): Column<Place>[] => [
  {
    name: tCatalog.topology.place,
    kind: 'lead',
    cell: ({ resource_id, display_name }) => {
      const step = STEPS[depth]
      return step === undefined ? (
        <ResourceLink id={resource_id} data-row="">
          {display_name}
        </ResourceLink>
      ) : (
        <Link to="/topology" search={{ ...way, [step]: resource_id }} data-row="">
          {display_name}
        </Link>
      )
    },
  },
  { name: tCatalog.topology.inside, kind: 'number', cell: ({ counts }) => counts.resources },
  { name: tCatalog.topology.counts, cell: ({ counts }) => <HealthCounts by_health={counts.by_health} /> },
  {
    name: tCatalog.topology.see,
    cell: ({ resource_id, type_key }) => {
      const scope = `scope.${type_key.split('.')[1]}_id="${resource_id}"`
      return (
        <Link to="/resources" search={{ type: '', region: '', health: '', q: scope }}>
          {tCatalog.topology.see}
        </Link>
      )
    },
  },
]

const WORST_FIRST = ['unhealthy', 'degraded', 'unknown', 'maintenance', 'healthy']

const HealthCounts = ({ by_health }: { by_health: Record<string, number> }) => {
  const present = WORST_FIRST.filter((health) => (by_health[health] ?? 0) > 0)
  if (present.length === 0) return <span className="text-muted">{tCatalog.topology.nothing_inside}</span>
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1">
      {present.map((health) => (
        <li key={health} className="flex items-center gap-1">
          <Health health={health} /> {by_health[health]}
        </li>
      ))}
    </ul>
  )
}
