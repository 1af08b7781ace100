import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { ROOT } from '../base/paths.ts'

/**
 * Checks that the tree matches test/rooms.cjs: no unlisted room, no missing one, and none with more files than a reader
 * can survey. Which room may import which is a rule of test/boundaries.cjs.
 */
type Rooms = { ROOMS: Record<string, string[][]>; MOST_FILES: number }
const { ROOMS, MOST_FILES } = createRequire(import.meta.url)('../../../test/rooms.cjs') as Rooms

const SOURCE = /^(apps|workflows|activities|db)\/.*\.(ts|tsx|mjs)$/
const GENERATED = /\/(gen|migrations)\//
/** The deepest folders below `apps`: apps/<app>/<room>; groups of contracts, words or executors are one level lower. */
const DEEPEST = 4

/** The problems of the tree, one line each. */
export const roomProblems = (files: readonly string[], { ROOMS, MOST_FILES }: Rooms): string[] => {
  const sources = files.filter((file) => SOURCE.test(file) && !GENERATED.test(file))
  const sizes = new Map<string, number>()
  for (const file of sources) sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1)
  const listed = Object.entries(ROOMS).flatMap(([app, floors]) => floors.flat().map((room) => `${app}/${room}`))
  const folders = [...sizes.keys()]
  const unlisted = folders.filter(
    (folder) => Object.keys(ROOMS).some((app) => folder.startsWith(`${app}/`)) && !listed.includes(folder),
  )
  return [
    ...unlisted.map((folder) => `${folder}: a room that test/rooms.cjs does not list`),
    ...listed.filter((room) => !sizes.has(room)).map((room) => `${room}: test/rooms.cjs lists it, but it has no files`),
    ...[...sizes]
      .filter(([, size]) => size > MOST_FILES)
      .map(([folder, size]) => `${folder}: ${size} files, more than ${MOST_FILES}: it has several subjects`),
    ...folders.filter((folder) => folder.split('/').length > DEEPEST).map((folder) => `${folder}: nested too deeply`),
  ]
}

export const staleRooms = (): string[] =>
  roomProblems(
    execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
      .trim()
      .split('\n'),
    { ROOMS, MOST_FILES },
  )
