import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import type { Place } from '../api/types.ts'
import { LEVELS, type PlaceLevel, placesQuery, type Within } from '../queries/topology.ts'
import { PictureChoice, usePicture } from '../resources/view.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { Behind } from '../values/behind.tsx'
import { tCatalog } from '../words/catalog.ts'
import { HealthCounts, Inside, PlaceLink, PlaceMap, STEPS, type Way } from './map.tsx'

/** Places from all regions down to a layer's segments, with their resources: nested boxes, or one level at a time. */
export const TopologyPage = () => {
  const way = useSearch({ from: '/shell/topology' })
  useTopic('resources')
  const depth = STEPS.findLastIndex((step) => way[step] !== undefined) + 1
  const drawn = usePicture(way.view)
  return (
    <Page>
      <Heading title={tCatalog.topology.title}>{tCatalog.topology.title}</Heading>
      {depth > 0 ? <Trail way={way} depth={depth} /> : null}
      <PictureChoice drawn={drawn} />
      {drawn ? <PlaceMap way={way} /> : <PlaceTable way={way} depth={depth} />}
    </Page>
  )
}

const PlaceTable = ({ way, depth }: { way: Way; depth: number }) => {
  const level = LEVELS[depth] as PlaceLevel
  const list = useInfiniteQuery(placesQuery(level, withinOf(way, depth)))
  return (
    <>
      <Behind replies={[list.data?.pages[0]]} />
      <h2 className="card-title">{tCatalog.topology.levels[level]}</h2>
      <ListTable
        list={list}
        empty={tCatalog.topology.empty[level]}
        next={depth === 0 ? <p>{tCatalog.topology.empty_hint}</p> : undefined}
        caption={tCatalog.topology.levels[level]}
        columns={columnsOf(way)}
        keyOf="resource_id"
      />
    </>
  )
}

/** Only the innermost place filters, because it is inside the others. */
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

const columnsOf = (way: Way): Column<Place>[] => [
  {
    name: tCatalog.topology.place,
    kind: 'lead',
    cell: (place) => (
      <PlaceLink way={way} place={place} data-row="">
        {place.display_name}
      </PlaceLink>
    ),
  },
  { name: tCatalog.topology.inside, kind: 'number', cell: (place) => <Inside place={place} /> },
  { name: tCatalog.topology.counts, cell: ({ counts }) => <HealthCounts counts={counts} /> },
]
