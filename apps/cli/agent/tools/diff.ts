import { createHash } from 'node:crypto'
import type { PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { lineMaskerOf, type Masker } from '../../../shared/data/mask.ts'
import { MAX_FIELDS } from './picture.ts'

/** How many characters of each side of a hunk are shown. */
const MAX_SIDE = 350

type Side = { text: string; size: number }

/**
 * Reads a unified diff without context by line, in bounded memory: each hunk is a field. Masks before it truncates, also
 * values that the ends of lines break on one side.
 */
export const createDiff = (mask: Masker) => {
  const hunks: { path: string; before: Side; after: Side }[] = []
  const hash = createHash('sha256')
  const masker = lineMaskerOf<{ stream: string }>(mask)
  let count = 0
  let last: (typeof hunks)[number] | undefined
  const put = (lines: { text: string; about: { stream: string } }[]) => {
    for (const { text, about } of lines) {
      hash.update(`${about.stream}${text}\n`)
      if (!last || !/[-+]/.test(about.stream)) continue
      const side = about.stream === '-' ? last.before : last.after
      const more = `${side.size > 0 ? '\n' : ''}${text}`
      side.size += more.length
      if (side.text.length < MAX_SIDE) side.text += more.slice(0, MAX_SIDE)
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
          ...shown('before', before),
          ...shown('after', after),
        })),
        ...(count > hunks.length && { fields_count: count }),
      }
    },
  }
}

const shown = (name: 'before' | 'after', { text, size }: Side) =>
  size === 0 ? {} : { [name]: size <= MAX_SIDE ? text : `${text.slice(0, MAX_SIDE)}… (${size} characters)` }
