import type { Db } from '../../../db/client.ts'
import { recordPacks } from '../../../db/operations/packs.ts'
import type { Library } from '../graph/types.ts'
import { PackError } from './source.ts'

/** Records the loaded packs. A version used before with other content stops the start, because plans refer to it. */
export const recordLibrary = async (db: Db, { packs }: Library): Promise<void> => {
  const reused = await db.transaction((tx) => recordPacks(tx, packs))
  if (!reused) return
  const reason = 'pack_version_reused: this version was loaded before with another content'
  throw new PackError([{ place: `${reused.pack}@${reused.version}`, pointer: '/version', rule: 'version', reason }])
}
