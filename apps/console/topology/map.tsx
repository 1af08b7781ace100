import '../styles/places.css'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { HEALTH_LOOKS } from '../../shared/contracts/client/status.ts'
import { figure } from '../kit/format.ts'
import { contentsQuery, placeGraphQuery } from '../queries/topology.ts'
import { Failure } from '../ui/failure.tsx'
import { Empty, Loading } from '../ui/page.tsx'
import { Behind } from '../values/behind.tsx'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { Contents } from './contents.tsx'
import { contentsOf } from './squares.ts'

export type Way = { region?: string; datacenter?: string; layer?: string; view?: 'picture' | 'table' }
export const STEPS = ['region', 'datacenter', 'layer'] as const

type Place = { resource_id: string; type_key: string; name: string; counts: Counts }
type Counts = { resources: number; by_health: Record<string, number> }
/** The places directly inside each place; those inside none are under the empty name. */
type Inner = ReadonlyMap<string, Place[]>

/**
 * Nested boxes: the places below the innermost place of the path, or below all regions, with their health. Within a data
 * center each resource is named or a square.
 */
export const PlaceMap = ({ way }: { way: Way }) => {
  const { data, error, refetch } = useQuery(placeGraphQuery(way.region))
  const read = useQuery({ ...contentsQuery(way.datacenter ?? ''), enabled: way.datacenter !== undefined })
  const within = read.data
  const contents = useMemo(
    () => (data && within ? contentsOf(within, new Set(data.nodes.map(({ resource_id }) => resource_id))) : undefined),
    [data, within],
  )
  if (data === undefined) return error ? <Failure error={error} retry={() => void refetch()} /> : <Loading />
  const outer = new Map(data.edges.map(({ from, to }) => [from, to]))
  const inner: Inner = Map.groupBy(data.nodes, ({ resource_id }) => outer.get(resource_id) ?? '')
  const top = inner.get(way.layer ?? way.datacenter ?? way.region ?? '') ?? []
  if (top.length === 0)
    return (
      <>
        <Behind replies={[data]} />
        <Empty next={<p>{tCatalog.topology.empty_hint}</p>}>{tCatalog.topology.empty.places}</Empty>
      </>
    )
  return (
    <>
      <Behind replies={[data, within]} />
      {data.truncated.nodes ? <p className="text-wait">{tCatalog.topology.partial}</p> : null}
      {within && !contents ? <p className="text-wait">{tCatalog.topology.not_drawn}</p> : null}
      {read.isError ? <Failure error={read.error} retry={() => void read.refetch()} /> : null}
      <Boxes places={top} inner={inner} way={way} contents={contents} />
    </>
  )
}

type BoxesProps = { places: Place[]; inner: Inner; way: Way; contents: ReturnType<typeof contentsOf> }

const Boxes = ({ places, inner, way, contents }: BoxesProps) => (
  <ul className="places">
    {places.map((place) => {
      const below = inner.get(place.resource_id)
      const resources = contents?.get(place.resource_id) ?? []
      return (
        <li key={place.resource_id}>
          <p className="flex flex-wrap justify-between gap-x-3">
            <PlaceLink way={way} place={place}>
              <bdi>{place.name}</bdi>
            </PlaceLink>
            <Inside place={place} />
          </p>
          <div className="health-bar" aria-hidden="true">
            {presentIn(place.counts).map(([health, n]) => (
              <span key={health} className={`tone-${HEALTH_LOOKS[health]?.tone ?? 'idle'}`} style={{ flexGrow: n }} />
            ))}
          </div>
          <HealthCounts counts={place.counts} />
          {resources.length > 0 ? <Contents place={place.name} resources={resources} /> : null}
          {below ? <Boxes places={below} inner={inner} way={wayTo(way, place)} contents={contents} /> : null}
        </li>
      )
    })}
  </ul>
)

const levelOf = ({ type_key }: Pick<Place, 'type_key'>): string => type_key.split('.')[1] ?? ''
const wayTo = (way: Way, place: Omit<Place, 'name'>): Way => ({ ...way, [levelOf(place)]: place.resource_id })

type LinkProps = { way: Way; place: Omit<Place, 'name'>; children: React.ReactNode; 'data-row'?: '' }

/** A place opens with the places in it; the innermost one opens as a resource. */
export const PlaceLink = ({ way, place, children, ...row }: LinkProps) =>
  STEPS.some((step) => step === levelOf(place)) ? (
    <Link to="/topology" search={wayTo(way, place)} {...row}>
      {children}
    </Link>
  ) : (
    <ResourceLink id={place.resource_id} {...row}>
      {children}
    </ResourceLink>
  )

/** Links to the resources in a place. */
export const Inside = ({ place }: Pick<LinkProps, 'place'>) => (
  <Link
    to="/resources"
    search={{ type: '', region: '', health: '', q: `scope.${levelOf(place)}_id="${place.resource_id}"` }}
  >
    {tCatalog.topology.count(place.counts.resources)}
  </Link>
)

const WORST_FIRST = ['unhealthy', 'degraded', 'unknown', 'maintenance', 'healthy']
const presentIn = ({ by_health }: Counts) =>
  WORST_FIRST.map((health) => [health, by_health[health] ?? 0] as const).filter(([, n]) => n > 0)

export const HealthCounts = ({ counts }: { counts: Counts }) => {
  const present = presentIn(counts)
  if (present.length === 0) return <span className="text-muted">{tCatalog.topology.nothing_inside}</span>
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1">
      {present.map(([health, n]) => (
        <li key={health} className="flex items-center gap-1">
          <Health health={health} /> {figure(n)}
        </li>
      ))}
    </ul>
  )
}
