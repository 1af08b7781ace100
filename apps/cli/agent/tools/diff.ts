import { createHash } from 'node:crypto'
import type { PreviewChange } from '../../../shared/contracts/client/preview.ts'
import { MAX_FIELDS } from './picture.ts'

/** How many characters of each side of a hunk are shown. */
const MAX_SIDE = 350

type Side = { text: string; size: number }

/** Reads a unified diff without context by line, in bounded memory: each hunk is a field. Masks before it truncates. */
export const createDiff = (mask: (text: string) => string) => {
  const hunks: { path: string; before: Side; after: Side }[] = []
  const hash = createHash('sha256')
  let count = 0
  let last: (typeof hunks)[number] | undefined
  return {
    read: (line: string): void => {
      const text = mask(line)
      hash.update(`${text}\n`)
      const [, at] = /^@@ -(\d+)/.exec(line) ?? []
      if (at !== undefined) {
        count += 1
        last = { path: `/line ${at}`, before: { text: '', size: 0 }, after: { text: '', size: 0 } }
        if (count <= MAX_FIELDS) hunks.push(last)
      } else if (last && /^[-+]/.test(text)) {
        const side = text.startsWith('-') ? last.before : last.after
        const more = `${side.size > 0 ? '\n' : ''}${text.slice(1)}`
        side.size += more.length
        if (side.text.length < MAX_SIDE) side.text += more.slice(0, MAX_SIDE)
      }
    },
    change: (id: string, action: string): PreviewChange => ({
      ...{ id: mask(id), action, digest: `sha256:${hash.digest('hex')}` },
      fields: hunks.map(({ path, before, after }) => ({ path, ...shown('before', before), ...shown('after', after) })),
      ...(count > hunks.length && { fields_count: count }),
    }),
  }
}

const shown = (name: 'before' | 'after', { text, size }: Side) =>
  size === 0 ? {} : { [name]: size <= MAX_SIDE ? text : `${text.slice(0, MAX_SIDE)}… (${size} characters)` }
