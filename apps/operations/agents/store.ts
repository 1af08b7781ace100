import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Files by the digest of their bytes: a stored file is complete and never changes. */
export type ArtifactStore = ReturnType<typeof createArtifactStore>

export const createArtifactStore = (dir: string) => {
  const pathOf = (sha256: string) => join(dir, sha256.slice(0, 2), sha256)

  const has = async (sha256: string, size: number): Promise<boolean> =>
    stat(pathOf(sha256)).then(
      (found) => found.size === size,
      () => false,
    )

  /** Stores the bytes, on disk when this returns, if digest and size match the given ones; returns false otherwise. */
  const put = async (sha256: string, size: number, bytes: Readable): Promise<boolean> => {
    const path = pathOf(sha256)
    await mkdir(dirname(path), { recursive: true })
    const beside = `${path}.${randomUUID()}`
    try {
      const hash = createHash('sha256')
      let length = 0
      const measure = new Transform({
        transform: (chunk: Buffer, _encoding, done) => {
          length += chunk.length
          hash.update(chunk)
          done(length > size ? new OtherBytes() : null, chunk)
        },
      })
      await pipeline(bytes, measure, createWriteStream(beside, { flags: 'wx', mode: 0o600 }))
      if (length !== size || hash.digest('hex') !== sha256) throw new OtherBytes()
      const file = await open(beside, 'r+')
      await file.sync().finally(() => file.close())
      await rename(beside, path)
      return true
    } catch (error) {
      await rm(beside, { force: true })
      if (error instanceof OtherBytes) return false
      throw error
    }
  }

  return {
    has,
    put,
    read: async (sha256: string, size: number): Promise<Readable | undefined> =>
      (await has(sha256, size)) ? createReadStream(pathOf(sha256)) : undefined,
    remove: (sha256: string) => rm(pathOf(sha256), { force: true }),
  }
}

class OtherBytes extends Error {}
