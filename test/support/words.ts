import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'

const WORDS = join(ROOT, 'apps/console/words')
const GERMAN = `${WORDS}-de`

/** A text of the console in both languages, under the path of its key; texts that a function makes are left out. */
export type Pair = { key: string; english: string; german: string }

/** Every text that the console has in German, with the English one. */
export const wordPairs = async (): Promise<Pair[]> => {
  const modules = readdirSync(GERMAN, { recursive: true, encoding: 'utf8' }).filter(
    // The English words of refusals are in the table of codes.
    (path) => path.endsWith('.ts') && existsSync(join(WORDS, path)),
  )
  const pairs = await Promise.all(
    modules.map(async (path) => {
      const [english, german] = await Promise.all([import(join(WORDS, path)), import(join(GERMAN, path))])
      return pairsOf(path, english, german)
    }),
  )
  return pairs.flat()
}

const pairsOf = (key: string, english: unknown, german: unknown): Pair[] => {
  if (typeof english === 'string' && typeof german === 'string') return [{ key, english, german }]
  if (typeof english !== 'object' || english === null || typeof german !== 'object' || german === null) return []
  return Object.entries(english).flatMap(([name, value]) =>
    pairsOf(`${key} ${name}`, value, (german as Record<string, unknown>)[name]),
  )
}
