import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { sql } from 'drizzle-orm'
import { listKeys } from '../../../db/token/queries.ts'
import { keksOf } from '../../shared/codec/kek.ts'
import { openPrivateKey } from '../../token/seal.ts'
import { printTable, settingOf, withDb } from '../ops/access.ts'

/** What a drill verifies in the restored database, each in the name of the app that it belongs to. */

/** A table of a large installation is read for as long as it takes. */
const READ_MS = 24 * 3_600_000

const select = async <T>(app: string, query: string): Promise<T[]> =>
  withDb(app, async (db) => (await db.execute(sql.raw(query))).rows as T[], READ_MS)

/** Whether the copy of the configuration opens what is sealed: signing keys, and the secrets of authenticator apps. */
export const keysFault = async (): Promise<string | undefined> => {
  const keks = keksOf(settingOf('token', 'KEYS__KEK'), 'TOKEN__KEYS__KEK')
  try {
    for (const { private_key, ...row } of await withDb('token', listKeys))
      if (private_key) openPrivateKey(keks, { ...row, private_key })
  } catch (error) {
    return `The copy of the configuration does not open the signing keys: ${(error as Error).message}.`
  }
  const known = keksOf(settingOf('credential', 'FACTORS__KEK'), 'CREDENTIAL__FACTORS__KEK').map(({ kek_id }) => kek_id)
  const used = await select<{ kek_id: string }>('credential', 'select distinct kek_id from credential.totp_factors')
  const lost = used.filter(({ kek_id }) => !known.includes(kek_id)).map(({ kek_id }) => kek_id)
  if (lost.length > 0)
    return `The copy of the configuration does not open authenticator apps: it lacks ${lost.join(', ')}.`
}

const COUNTED = [
  ['identity', 'identity.users'],
  ['catalog', 'catalog.resource'],
  ['operations', 'operations.operations'],
] as const
export const contentsFault = async (): Promise<string | undefined> => {
  const counts = await Promise.all(
    COUNTED.map(async ([app, table]) => {
      const [row] = await select<{ n: string }>(app, `select count(*) as n from ${table}`)
      return row?.n ?? '0'
    }),
  )
  printTable(['PEOPLE', 'RESOURCES', 'OPERATIONS'], [counts])
  return counts[0] === '0' ? 'There is no person in it.' : undefined
}

/** The copy may be a day old, and the bytes of an artifact arrive after its row. */
const MARGIN_DAYS = 2

/** Whether each artifact that was kept at that time, and had to be in the copy of their folder, has its bytes there. */
export const artifactsFault = async (copy: string, until: number): Promise<string | undefined> => {
  const kept = await select<{ sha256: string; at_s: number }>(
    'operations',
    `select sha256, extract(epoch from min(created_at))::float8 as at_s from operations.operation_artifact_index
     where status = 'stored' and expires_at is null and content is null group by sha256`,
  )
  if (!existsSync(copy)) {
    console.log(`Not verified: the files of ${kept.length} artifacts. There is no ${copy}.`)
    return
  }
  const due = kept.filter(({ at_s }) => at_s * 1000 < until - MARGIN_DAYS * 86_400_000)
  let bad = 0
  for (const { sha256 } of due) if ((await digestOf(join(copy, sha256.slice(0, 2), sha256))) !== sha256) bad += 1
  console.log(`Artifacts: ${due.length} of ${kept.length} are older than ${MARGIN_DAYS} days.`)
  if (bad > 0) return `${bad} of these artifacts are not in ${copy} as they were stored: is it copied each day?`
}

const digestOf = async (file: string): Promise<string | undefined> => {
  if (!existsSync(file)) return
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
