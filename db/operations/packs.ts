import { equals, type Tx } from '../client.ts'
import { packs } from './tables/index.ts'

export type PackRecord = { pack: string; version: string; digest: string; document: Record<string, unknown> }

/** Records what plans may refer to. Returns the first pack whose version is known with another content: it must not be used. */
export const recordPacks = async (tx: Tx, records: readonly PackRecord[]): Promise<PackRecord | undefined> => {
  for (const { pack, version, digest, document } of records) {
    await tx.insert(packs).values({ pack, version, digest, document }).onConflictDoNothing()
    const [known] = await tx.select({ digest: packs.digest }).from(packs).where(equals(packs, { pack, version }))
    if (known?.digest !== digest) return { pack, version, digest, document }
  }
  return undefined
}
