import { byActionWeight } from '../../../shared/contracts/action-weight.ts'
import type { PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { digest } from '../../../shared/data/digest.ts'

const MAX_CHANGES = 200
export const MAX_FIELDS = 100
export const MAX_TEXT = 400
/** Of a longer text this much is shown; the rest of MAX_TEXT says what is left out. */
const SHOWN = 320
/** How much text that both sides share is shown around their differences. */
const AROUND = 60
/** The outputs of an attempt are limited to 256 KiB. */
const MAX_SHOWN = 150_000

/** The members of a preview that report its changes: bounded for display, but counted and digested in full. */
export const pictureOf = (all: PreviewChange[]) => {
  const counts: Record<string, number> = {}
  for (const { id, action } of all) if (!id.startsWith('output.')) counts[action] = (counts[action] ?? 0) + 1
  return {
    changes: picture(all),
    changes_count: all.length,
    /** Covers all changes, including those that are not shown. */
    digest: digest(all),
    counts,
    unknowns: all.reduce((sum, { fields }) => sum + fields.filter(({ unknown }) => unknown).length, 0),
    no_change: all.length === 0,
  }
}

/** The first items whose JSON fits into this many bytes. */
export const fitting = <T>(items: T[], bytes: number): T[] => {
  let left = bytes
  const end = items.findIndex((item) => {
    left -= Buffer.byteLength(JSON.stringify(item))
    return left < 0
  })
  return end < 0 ? items : items.slice(0, end)
}

/** The heaviest changes, as many as fit. */
const picture = (all: PreviewChange[]): PreviewChange[] => {
  let left = MAX_SHOWN
  return all
    .sort(byWeight)
    .slice(0, MAX_CHANGES)
    .map(bounded)
    .filter((change) => {
      left -= Buffer.byteLength(JSON.stringify(change))
      return left > 0
    })
}

const byWeight = (a: PreviewChange, b: PreviewChange) => byActionWeight(a.action, b.action) || (a.id < b.id ? -1 : 1)

/** Bounds the display of a diff of any size. */
const bounded = ({ fields, ...change }: PreviewChange): PreviewChange => ({
  ...change,
  fields: fields
    .slice(0, MAX_FIELDS)
    .map(({ before, after, ...field }) => ({ ...field, ...sidesOf(sideOf(before), sideOf(after)) })),
  ...(fields.length > MAX_FIELDS && { fields_count: fields.length }),
})

/** One side of a change as text; `size`: how long it is if not all of it was kept. */
export type Side = { text: string; size?: number; value?: unknown }

const sideOf = (value: unknown): Side | undefined =>
  value === undefined ? undefined : { text: typeof value === 'string' ? value : JSON.stringify(value), value }

/**
 * Cuts long sides where they are equal, and in the middle of their differences: what is approved is the difference, and
 * two sides that look alike would hide it.
 */
export const sidesOf = (before: Side | undefined, after: Side | undefined) => {
  if (!before || !after) {
    const only = (side: Side | undefined) => side && shown(side, 0, Number.POSITIVE_INFINITY)
    return { ...(before && { before: only(before) }), ...(after && { after: only(after) }) }
  }
  const [a, b] = [before.text, after.text]
  const least = Math.min(a.length, b.length)
  let start = 0
  while (start < least && a[start] === b[start]) start += 1
  let end = 0
  while (end < least - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const [was, is] = [shown(before, start, end), shown(after, start, end)]
  // Two huge texts may differ only behind what was kept of them.
  const behind = a === b && Math.max(before.size ?? 0, after.size ?? 0) > a.length
  return { before: was, after: behind ? `${is}, and differs after ${a.length}` : is }
}

/** `start` and `end`: how much both sides have in common there. */
const shown = ({ text, size = text.length, value = text }: Side, start: number, end: number): unknown => {
  if (size <= MAX_TEXT) return value
  const from = edge(text, Math.max(Math.min(start, text.length) - AROUND, 0))
  const to = Math.min(Math.max(text.length - end + AROUND, from + SHOWN), text.length)
  const middle = to - from > SHOWN ? [edge(text, from + SHOWN / 2), edge(text, to - SHOWN / 2)] : [to, to]
  const line = text.slice(0, from).split('\n').length
  const front = from === 0 ? '' : line === 1 ? '… ' : `… (line ${line}) `
  const parts = [text.slice(from, middle[0]), text.slice(middle[1], to)].filter((part) => part !== '')
  return `${front}${parts.join(' … ')}${to < size ? '…' : ''} (${size} characters)`
}

/** The place before a mask or a pair of surrogates that a cut would divide. */
const edge = (text: string, at: number): number => {
  let place = at
  while (place > 0 && /^(?:••|[\ud800-\udbff][\udc00-\udfff])/.test(text.slice(place - 1, place + 1))) place -= 1
  return place
}
