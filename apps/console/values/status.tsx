import {
  HEALTH_LOOKS,
  lookOf,
  nodeLook,
  operationLook,
  type Shape,
  type State,
  type StatusLook,
  type Tone,
} from '../../shared/contracts/client/status.ts'
import { t } from '../words/index.ts'

/** Weight follows urgency: a state that needs no one is thin; a failure, an unknown outcome and a wait for a person are filled. */
const THIN: ReadonlySet<Shape> = new Set(['dashed', 'dot', 'clock', 'chevrons', 'slash'])

/** Outlines that differ without color: 16 px, drawn in the current color. */
const SHAPES: Record<Shape, React.ReactNode> = {
  dashed: <circle cx="8" cy="8" r="6" strokeDasharray="2.6 2.1" />,
  dot: (
    <>
      <circle cx="8" cy="8" r="6" />
      <circle cx="8" cy="8" r="1.6" fill="currentColor" stroke="none" />
    </>
  ),
  play: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="M6.6 5.2v5.6L11 8z" fill="currentColor" strokeWidth="1" />
    </>
  ),
  diamond: (
    <>
      <path d="M8 1.2 14.8 8 8 14.8 1.2 8z" fill="currentColor" />
      <path d="M8 4.8v3.8M8 10.9v.2" stroke="var(--surface)" strokeLinecap="round" />
    </>
  ),
  clock: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="M8 4.4V8l2.6 1.6" strokeLinecap="round" />
    </>
  ),
  retry: <path d="M13.4 9.4A5.7 5.7 0 1 1 12 3.9M12.6 1.2v3.2H9.4" strokeLinecap="round" strokeLinejoin="round" />,
  bars: (
    <>
      <rect x="1.8" y="1.8" width="12.4" height="12.4" rx="3" />
      <path d="M6.2 5.2v5.6M9.8 5.2v5.6" strokeLinecap="round" />
    </>
  ),
  check: (
    <>
      <circle cx="8" cy="8" r="7" fill="currentColor" stroke="none" />
      <path d="m4.8 8.2 2.3 2.3 4.2-4.7" stroke="var(--surface)" strokeLinecap="round" strokeLinejoin="round" />
    </>
  ),
  hexagon: (
    <>
      <path d="M8 1.2 14 4.6v6.8L8 14.8 2 11.4V4.6z" />
      <path d="m5.4 8.2 1.9 1.9 3.4-3.8" strokeLinecap="round" strokeLinejoin="round" />
    </>
  ),
  octagon: (
    <>
      <path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" fill="currentColor" stroke="none" />
      <path d="m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8" stroke="var(--surface)" strokeLinecap="round" />
    </>
  ),
  question: (
    <>
      <rect x="1.8" y="1.8" width="12.4" height="12.4" fill="currentColor" />
      <path
        d="M6.2 6.2c0-2.4 3.6-2.3 3.6-.1 0 1.4-1.8 1.5-1.8 2.9M8 11.2v.2"
        stroke="var(--surface)"
        strokeLinecap="round"
      />
    </>
  ),
  chevrons: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="m5 5.6 2.4 2.4L5 10.4m3.4-4.8L10.8 8l-2.4 2.4" strokeLinejoin="round" />
    </>
  ),
  slash: (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="m3.8 12.2 8.4-8.4" />
    </>
  ),
  undo: <path d="M5.4 2.4 2 5.8l3.4 3.4M2.4 5.8h7a4 4 0 0 1 0 8H6" strokeLinecap="round" strokeLinejoin="round" />,
}

type ShapeIconProps = { shape: Shape; tone: Tone; size?: number; beside?: boolean }

/** A shape in the color of its tone; `beside` text of several lines, it is in line with the first. */
export const ShapeIcon = ({ shape, tone, size = 16, beside = false }: ShapeIconProps) => (
  <svg
    className={`shape tone-${tone} ${beside ? 'mt-0.5' : ''}`}
    width={size}
    height={size}
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    strokeWidth={THIN.has(shape) ? 1.25 : 1.75}
    aria-hidden="true"
  >
    {SHAPES[shape]}
  </svg>
)

/** The label for a state: the exact one if it is more precise than its group's. */
export const statusWord = (state: string, look: StatusLook = lookOf(state)): string =>
  look.word === 'waiting_person' ? t.status.waiting_person : (t.state[state] ?? t.status[look.word])

/** Another text than a known state needs a look with it. */
type Props = { badge?: boolean } & ({ state: State; look?: undefined } | { state: string; look: StatusLook })

/** Shape and label. In lists only the shape is colored; a badge has the soft tint. */
export const Status = ({ state, look = lookOf(state), badge = false }: Props) => (
  <span className={badge ? `badge tone-${look.tone}` : 'status'}>
    <ShapeIcon shape={look.shape} tone={look.tone} />
    <span>{statusWord(state, look)}</span>
  </span>
)

type OperationStatusMarkProps = { status: string; blockedOn?: readonly { kind: string }[]; badge?: boolean }

export const OperationStatusMark = ({ status, blockedOn, badge = false }: OperationStatusMarkProps) => (
  <Status state={status} look={operationLook(status, blockedOn)} badge={badge} />
)

type NodeStatusProps = { state: string; person?: boolean; badge?: boolean }

export const NodeStatus = ({ state, person = false, badge = false }: NodeStatusProps) => (
  <Status state={state} look={nodeLook(state, person)} badge={badge} />
)

export const Health = ({ health }: { health: string }) => {
  const look = HEALTH_LOOKS[health] ?? { shape: 'question' as const, tone: 'odd' as const }
  return (
    <span className="status">
      <ShapeIcon shape={look.shape} tone={look.tone} />
      <span>{t.health[health] ?? health}</span>
    </span>
  )
}
