import '../styles/graph.css'
import '../styles/picture.css'
import { Link } from '@tanstack/react-router'
import { useId, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { HEALTH_LOOKS } from '../../shared/contracts/client/status.ts'
import { neighbour } from '../graph/walk.ts'
import { ShapeIcon } from '../values/status.tsx'
import { tCatalog } from '../words/catalog.ts'
import { t } from '../words/index.ts'
import type { Branches, Face } from './branches.ts'
import { curveOf, pictureOf } from './tree.ts'

type Props = {
  label: string
  /** The subject of the picture, at whose box the keyboard navigation begins. */
  about: { resource_id: string; name: string; health_status: string }
  branches: Branches
  /** The tab that its links open. */
  tab: 'relations' | 'impact' | 'capabilities'
  /** Whether relations point from left to right. */
  arrows?: boolean
}
const STEPS = { ArrowRight: 'right', ArrowLeft: 'left', ArrowUp: 'up', ArrowDown: 'down' } as const

/** Resources and their relations as links and lines. One tab stop; arrow keys move, and Enter opens a resource. */
export const PictureView = ({ label, about, branches, tab, arrows = false }: Props) => {
  const pane = useRef<HTMLDivElement>(null)
  const picture = useMemo(() => pictureOf(about.resource_id, branches.right, branches.left), [about, branches])
  const [wanted, setWanted] = useState(about.resource_id)
  const at = picture.boxes.some(({ id }) => id === wanted) ? wanted : about.resource_id
  const [keysId, headId] = [useId(), useId()]
  const root = picture.boxes[0]
  // biome-ignore lint/correctness/useExhaustiveDependencies: a picture opens on its resource, and stays where it was scrolled
  useLayoutEffect(() => {
    if (pane.current === null || root === undefined) return
    pane.current.scrollTop = root.y + root.height / 2 - pane.current.clientHeight / 2
    pane.current.scrollLeft = branches.left.length === 0 ? 0 : root.x + root.width / 2 - pane.current.clientWidth / 2
  }, [about.resource_id])
  const key = (event: React.KeyboardEvent) => {
    const step = STEPS[event.key as keyof typeof STEPS]
    if (step === undefined) return
    const next = neighbour(picture, at, step)
    setWanted(next)
    pane.current?.querySelector<HTMLElement>(`[data-box="${CSS.escape(next)}"]`)?.focus()
    event.preventDefault()
  }
  const faceOf = (id: string): Face | undefined =>
    branches.faces.get(id) ?? (id === about.resource_id ? { ...about, health: about.health_status } : undefined)
  return (
    <div ref={pane} className="card picture">
      <p id={keysId} className="sr-only">
        {tCatalog.picture.keys}
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: links that are arranged, not fields of a form */}
      <div
        role="group"
        aria-label={label}
        aria-describedby={keysId}
        style={{ width: picture.width, height: picture.height }}
        onKeyDown={key}
      >
        <svg width={picture.width} height={picture.height} aria-hidden="true">
          <marker id={headId} viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0 8 4 0 8z" className="picture-head" />
          </marker>
          {picture.lines.map(({ id, points }) => (
            <path
              key={id}
              d={curveOf(points)}
              className="graph-line"
              fill="none"
              markerEnd={arrows ? `url(#${headId})` : undefined}
            />
          ))}
        </svg>
        {picture.tags.map(({ id, name, x, y, width, height }) => (
          <span key={id} className="picture-tag" style={{ left: x, top: y, width, height }} title={name}>
            {name}
          </span>
        ))}
        {picture.boxes.map(({ id, x, y }) => {
          const face = faceOf(id)
          return face === undefined ? null : (
            <FaceBox
              key={id}
              face={face}
              tab={tab}
              about={about.resource_id}
              place={{
                ...{ 'data-box': id, style: { left: x, top: y }, tabIndex: id === at ? 0 : -1 },
                onFocus: () => setWanted(id),
              }}
            />
          )
        })}
      </div>
    </div>
  )
}

type Place = { 'data-box': string; style: React.CSSProperties; tabIndex: number; onFocus: () => void }

const FaceBox = ({ face, tab, about, place }: { face: Face; tab: Props['tab']; about: string; place: Place }) => {
  const look = HEALTH_LOOKS[face.effect ?? face.health ?? ''] ?? { shape: 'dashed' as const, tone: 'idle' as const }
  const shared = { ...place, className: `step tone-${look.tone} ${face.resource_id === about ? 'chosen' : ''}` }
  if (face.rest !== undefined && tab !== 'capabilities')
    return (
      <Link {...shared} to="/resources/$resource_id" params={{ resource_id: about }} search={{ tab, view: 'table' }}>
        <span className="truncate">{tCatalog.picture.rest(face.rest)}</span>
      </Link>
    )
  if (face.resource_id === null)
    return (
      <span {...shared} role="note">
        {face.rest === undefined ? (
          <bdi>{face.name || tCatalog.resource.hidden}</bdi>
        ) : (
          tCatalog.picture.more(face.rest)
        )}
      </span>
    )
  const now = t.health[face.health ?? ''] ?? ''
  const words =
    face.note ?? (face.effect && face.effect !== face.health ? tCatalog.picture.becomes(now, face.effect) : now)
  return (
    <Link
      {...shared}
      to="/resources/$resource_id"
      params={{ resource_id: face.resource_id }}
      search={{ tab, view: 'picture' }}
    >
      <ShapeIcon shape={look.shape} tone={look.tone} size={18} />
      <span className="flex min-w-0 flex-1 flex-col">
        <span className="truncate text-table font-medium" title={face.name}>
          <bdi>{face.name}</bdi>
        </span>{' '}
        <span className="truncate text-meta text-muted" title={words}>
          {words}
        </span>
      </span>
    </Link>
  )
}
