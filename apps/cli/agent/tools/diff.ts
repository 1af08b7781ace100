import { createHash } from 'node:crypto'
import type { PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { lineMaskerOf, type Masker } from '../../../shared/data/mask.ts'
import { MAX_FIELDS, MAX_TEXT, type Side, sidesOf } from './picture.ts'

/** How many characters of all hunks are kept, beyond what is shown anyway, to find where their sides differ. */
const MAX_KEPT = 1024 * 1024

type Kept = Side & { size: number }

/**
 * Reads a unified diff without context by line, in bounded memory: each hunk is a field. Masks before it truncates, also
 * values that the ends of lines break on one side.
 */
export const createDiff = (mask: Masker) => {
  const hunks: { path: string; before: Kept; after: Kept }[] = []
  const hash = createHash('sha256')
  const masker = lineMaskerOf<{ stream: string }>(mask)
  let count = 0
  let left = MAX_KEPT
  let last: (typeof hunks)[number] | undefined
  const put = (lines: { text: string; about: { stream: string } }[]) => {
    for (const { text, about } of lines) {
      hash.update(`${about.stream}${text}\n`)
      if (!last || !/[-+]/.test(about.stream)) continue
      const side = about.stream === '-' ? last.before : last.after
      const more = `${side.size > 0 ? '\n' : ''}${text}`
      side.size += more.length
      const kept = more.slice(0, Math.max(left, MAX_TEXT - side.text.length, 0))
      side.text += kept
      left -= kept.length
    }
  }
  return {
    read: (line: string): void => {
      const [, at] = /^@@ -(\d+)/.exec(line) ?? []
      if (at !== undefined) put(masker.rest())
      put(masker.add(line.slice(1), { stream: line.slice(0, 1) }))
      if (at === undefined) return
      put(masker.rest())
      count += 1
      last = { path: `/line ${at}`, before: { text: '', size: 0 }, after: { text: '', size: 0 } }
      if (count <= MAX_FIELDS) hunks.push(last)
    },
    change: (id: string, action: string): PreviewChange => {
      put(masker.rest())
      return {
        ...{ id: mask(id), action, digest: `sha256:${hash.digest('hex')}` },
        fields: hunks.map(({ path, before, after }) => ({
          path,
          ...sidesOf(before.size > 0 ? before : undefined, after.size > 0 ? after : undefined),
        })),
        ...(count > hunks.length && { fields_count: count }),
      }
    },
  }
}
