/** A stretch of time in ms. */
export type Span = { from: number; to: number }

/** No stretch is shorter: below it the axis would not tell its marks apart. */
const LEAST_MS = 100
const lengthOf = ({ from, to }: Span): number => to - from

/** A stretch of this length around `from`, moved so that it lies within the whole. Pure. */
const within = (from: number, length: number, whole: Span): Span => {
  const long = Math.min(lengthOf(whole), Math.max(LEAST_MS, length))
  const begin = Math.min(whole.to - long, Math.max(whole.from, from))
  return { from: begin, to: begin + long }
}

/** The stretch that is `factor` times as long; the moment at this share of it stays in place. Pure. */
export const zoomed = (span: Span, whole: Span, factor: number, share = 0.5): Span => {
  const length = Math.max(LEAST_MS, lengthOf(span) * factor)
  return within(span.from + share * (lengthOf(span) - length), length, whole)
}

/** The stretch later by this share of its length, or earlier. Pure. */
export const moved = (span: Span, whole: Span, share: number): Span =>
  within(span.from + share * lengthOf(span), lengthOf(span), whole)

const CLOSER = 0.5
const STEP = 0.25

/** Each action with its key and what it makes of a stretch. */
export const ZOOMS = {
  in: { key: '+', make: (span: Span, whole: Span) => zoomed(span, whole, CLOSER) },
  out: { key: '-', make: (span: Span, whole: Span) => zoomed(span, whole, 1 / CLOSER) },
  earlier: { key: 'ArrowLeft', make: (span: Span, whole: Span) => moved(span, whole, -STEP) },
  later: { key: 'ArrowRight', make: (span: Span, whole: Span) => moved(span, whole, STEP) },
  all: { key: '0', make: (_span: Span, whole: Span) => whole },
} as const
export type Zoom = keyof typeof ZOOMS

/** The asked part of the whole; the whole itself if no part was asked for or none of it is in the whole. Pure. */
export const partOf = (whole: Span, from: number | undefined, to: number | undefined): Span => {
  const part = { from: Math.max(whole.from, from ?? whole.from), to: Math.min(whole.to, to ?? whole.to) }
  return lengthOf(part) > 0 ? within(part.from, lengthOf(part), whole) : whole
}

/** What a turn of the wheel makes of a stretch: with Ctrl it zooms at the pointer, with Shift it moves; else undefined. Pure. */
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
