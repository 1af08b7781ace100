import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What tells the data of one folder from that of any other, wherever both are seen. */
export type Installation = {
  id: string
  /** Temporal's namespace: of its own, or `default` where the folder is older than its id. */
  namespace: string
  /** Before the names of task queues: two installations on one engine never meet. */
  queue_prefix: string
}

/** The first 8 digits of the id, for names. */
export const shortName = ({ id }: Pick<Installation, 'id'>): string => `sb-${id.slice(0, 8)}`

const fileOf = (dir: string) => join(dir, 'installation.json')

/** Gives a folder whose data was dropped the names of a new one; it stays the same installation. */
export const renewNames = (dir: string): void => {
  const { id } = ensureInstallation(dir)
  write(dir, { id, namespace: shortName({ id }), queue_prefix: `${shortName({ id })}-` })
}

const write = (dir: string, installation: Installation): void =>
  writeFileSync(fileOf(dir), `${JSON.stringify(installation, null, 2)}\n`)

/** The installation of a folder, made with its first start. Data of an older version keeps the names it was made with. */
export const ensureInstallation = (dir: string): Installation => {
  if (existsSync(fileOf(dir))) return JSON.parse(readFileSync(fileOf(dir), 'utf8')) as Installation
  const id = randomUUID()
  const older = existsSync(join(dir, 'keys/secrets.json'))
  const made = {
    id,
    namespace: older ? 'default' : shortName({ id }),
    queue_prefix: older ? '' : `${shortName({ id })}-`,
  }
  mkdirSync(dir, { recursive: true })
  write(dir, made)
  return made
}
