/** A time span in ms. */
export type Span = { from: number; to: number }

/** The shortest span: below it, the marks of the axis could not be told apart. */
const LEAST_MS = 100
const lengthOf = ({ from, to }: Span): number => to - from

/** A span of this length from `from`, moved to lie within the whole. Pure. */
const within = (from: number, length: number, whole: Span): Span => {
  const long = Math.min(lengthOf(whole), Math.max(LEAST_MS, length))
  const begin = Math.min(whole.to - long, Math.max(whole.from, from))
  return { from: begin, to: begin + long }
}

/** A span `factor` times as long; the moment at this share of it stays in place. Pure. */
export const zoomed = (span: Span, whole: Span, factor: number, share = 0.5): Span => {
  const length = Math.max(LEAST_MS, lengthOf(span) * factor)
  return within(span.from + share * (lengthOf(span) - length), length, whole)
}

/** The span moved later (or earlier) by this share of its length. Pure. */
export const moved = (span: Span, whole: Span, share: number): Span =>
  within(span.from + share * lengthOf(span), lengthOf(span), whole)

export type Edge = 'from' | 'to'
/** The span with one edge at another time: within the whole, and not past its other edge. Pure. */
export const edgeMoved = ({ from, to }: Span, whole: Span, edge: Edge, time: number): Span =>
  edge === 'from'
    ? { from: Math.max(whole.from, Math.min(time, to - LEAST_MS)), to }
    : { from, to: Math.min(whole.to, Math.max(time, from + LEAST_MS)) }

const CLOSER = 0.5
const STEP = 0.25

/** Each action with its key and its effect on a span. */
export const ZOOMS = {
  in: { key: '+', make: (span: Span, whole: Span) => zoomed(span, whole, CLOSER) },
  out: { key: '-', make: (span: Span, whole: Span) => zoomed(span, whole, 1 / CLOSER) },
  earlier: { key: 'ArrowLeft', make: (span: Span, whole: Span) => moved(span, whole, -STEP) },
  later: { key: 'ArrowRight', make: (span: Span, whole: Span) => moved(span, whole, STEP) },
  all: { key: '0', make: (_span: Span, whole: Span) => whole },
} as const
export type Zoom = keyof typeof ZOOMS

/** The requested part of the whole; the whole itself if no part was requested or none of it lies within. Pure. */
export const partOf = (whole: Span, from: number | undefined, to: number | undefined): Span => {
  const part = { from: Math.max(whole.from, from ?? whole.from), to: Math.min(whole.to, to ?? whole.to) }
  return lengthOf(part) > 0 ? within(part.from, lengthOf(part), whole) : whole
}

/** The effect of the wheel on a span: Ctrl zooms at the pointer, Shift moves it; otherwise `undefined`. Pure. */
export const wheeled = (
  {
    deltaX,
    deltaY,
    ctrlKey,
    metaKey,
    shiftKey,
  }: Pick<WheelEvent, 'deltaX' | 'deltaY' | 'ctrlKey' | 'metaKey' | 'shiftKey'>,
  span: Span,
  whole: Span,
  share: number,
): Span | undefined => {
  if (ctrlKey || metaKey) return zoomed(span, whole, Math.exp(deltaY / WHEEL_PX), Math.min(1, Math.max(0, share)))
  if (shiftKey) return moved(span, whole, (deltaX || deltaY) / WHEEL_PX)
  return undefined
}
const WHEEL_PX = 500
