import { useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { HEALTH_LOOKS } from '../../shared/contracts/client/status.ts'
import { ResourceLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { t } from '../words/index.ts'
import { CELL, type Resource, squareAt, squaresOf, stepFrom } from './squares.ts'

type SquaresProps = { place: string; resources: Resource[] }

/** As many resources of a place are shown by name. */
const NAMED = 24

/** The resources of a place: few by name, many as squares. */
export const Contents = (props: SquaresProps) =>
  props.resources.length > NAMED ? (
    <Squares {...props} />
  ) : (
    <ul className="flex flex-wrap gap-x-4 gap-y-1">
      {props.resources.map(({ resource_id, name, health_status }) => (
        <li key={resource_id} className="flex flex-wrap items-center gap-1">
          <ResourceLink id={resource_id}>{name}</ResourceLink> <Health health={health_status} />
        </li>
      ))}
    </ul>
  )

/** A square for each resource of a place. One tab stop; arrow keys move, and Enter opens a resource. */
const Squares = ({ place, resources }: SquaresProps) => {
  const navigate = useNavigate()
  const { across, paths, width, height } = useMemo(() => squaresOf(resources), [resources])
  const [at, setAt] = useState<number>()
  const chosen = at === undefined ? undefined : resources[at]
  const open = (resource: Resource | undefined) => {
    const params = resource && { resource_id: resource.resource_id }
    if (params) void navigate({ to: '/resources/$resource_id', params, search: { tab: 'overview' } })
  }
  const under = ({ clientX, clientY, currentTarget }: React.MouseEvent) => {
    const box = currentTarget.getBoundingClientRect()
    const scale = width / box.width
    return squareAt((clientX - box.left) * scale, (clientY - box.top) * scale, across, resources.length)
  }
  const press = (event: React.KeyboardEvent) => {
    if (event.key === 'Enter') return open(chosen)
    const next = stepFrom(at ?? 0, event.key, across, resources.length)
    if (next === undefined) return
    event.preventDefault()
    setAt(next)
  }
  return (
    <div className="flex flex-col gap-1">
      <svg
        className="squares"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        role="application"
        aria-label={tCatalog.topology.squares(place, resources.length)}
        aria-description={tCatalog.topology.keys}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys of its own
        tabIndex={0}
        onFocus={() => setAt((before) => before ?? 0)}
        onKeyDown={press}
        onPointerMove={(event) => setAt(under(event))}
        onPointerLeave={() => setAt(undefined)}
        onClick={(event) => open(resources[under(event) ?? -1])}
      >
        {[...paths].map(([health, path]) => (
          <path key={health} d={path} className={`tone-${HEALTH_LOOKS[health]?.tone ?? 'odd'}`} data-health={health} />
        ))}
        {at === undefined || chosen === undefined ? null : (
          <rect x={(at % across) * CELL} y={Math.floor(at / across) * CELL} width={CELL - 2} height={CELL - 2} />
        )}
      </svg>
      <p role="status" className="min-h-5 wrap-anywhere">
        {chosen ? (
          <>
            <bdi>{chosen.name}</bdi>, {(t.health[chosen.health_status] ?? chosen.health_status).toLowerCase()}
          </>
        ) : null}
      </p>
    </div>
  )
}
