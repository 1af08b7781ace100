import { randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere, writeWhole } from './record.ts'

/** The names that keep the data of one folder apart from that of any other on shared servers. */
export type Installation = {
  id: string
  /** Temporal's namespace: a separate one, or `default` if the folder is older than its id. */
  namespace: string
  /** The prefix of task queue names, so that two installations on one engine never meet. */
  queue_prefix: string
}

/** The first 8 digits of the id, for names. */
export const shortName = ({ id }: Pick<Installation, 'id'>): string => `sb-${id.slice(0, 8)}`

const fileOf = (dir: string) => join(dir, 'installation.json')

export const hasInstallation = (dir: string): boolean =>
  existsSync(fileOf(dir)) || existsSync(join(dir, 'keys/secrets.json'))

/** Gives a folder whose data was dropped the names of a new installation; it keeps its id. */
export const renewNames = (dir: string): void => {
  const { id } = ensureInstallation(dir)
  write(dir, { id, namespace: shortName({ id }), queue_prefix: `${shortName({ id })}-` })
}

const write = (dir: string, installation: Installation): void =>
  writeWhole(fileOf(dir), `${JSON.stringify(installation, null, 2)}\n`, 0o644)

/** The installation of a folder, created on its first start. Data of an older version keeps its original names. */
export const ensureInstallation = (dir: string): Installation => {
  const known = readIfThere<Installation>(fileOf(dir))
  if (known) return known
  // Other names would hide all operations, so only a file that was never filled is made anew.
  if ((statSync(fileOf(dir), { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new Error(`${fileOf(dir)} cannot be read: restore it from a backup, or make it readable for this account.`)
  const id = randomUUID()
  const older = existsSync(join(dir, 'keys/secrets.json'))
  const made = {
    id,
    namespace: older ? 'default' : shortName({ id }),
    queue_prefix: older ? '' : `${shortName({ id })}-`,
  }
  write(dir, made)
  return made
}
