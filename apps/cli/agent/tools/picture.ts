import { byActionWeight } from '../../../shared/contracts/action-weight.ts'
import type { PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { digest } from '../../../shared/data/digest.ts'

const MAX_CHANGES = 200
export const MAX_FIELDS = 100
const MAX_TEXT = 400
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
    .map(({ before, after, ...field }) => ({
      ...field,
      ...(before !== undefined && { before: short(before) }),
      ...(after !== undefined && { after: short(after) }),
    })),
  ...(fields.length > MAX_FIELDS && { fields_count: fields.length }),
})

const short = (value: unknown): unknown => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= MAX_TEXT ? value : `${text.slice(0, MAX_TEXT)}… (${text.length} characters)`
}
