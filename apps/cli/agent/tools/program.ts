import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Executed } from '../../../shared/contracts/operations/common.ts'

/** A name or version that evidence can state. */
const PLAIN = /^[ -~]{1,100}$/

/** Digests by path, size and time of change: a large program is read once. */
const digests = new Map<string, Promise<string>>()

/** How evidence names a program: by its file name and, if this agent may read it, its digest. */
export const programAt = async (path: string): Promise<Partial<Executed>> => {
  const tool = basename(path)
  if (!PLAIN.test(tool)) return {}
  const tool_sha256 = await digestOf(path).catch(() => undefined)
  return { tool, ...(tool_sha256 !== undefined && { tool_sha256 }) }
}

/** Keeps the version that a program states. */
export const noteVersion = ({ executed }: { executed: Partial<Executed> }, version: unknown): void => {
  if (typeof version === 'string' && PLAIN.test(version)) executed.version = version
}

const digestOf = async (path: string): Promise<string> => {
  const { ino, size, mtimeMs } = await stat(path)
  const key = [path, ino, size, mtimeMs].join(' ')
  const known = digests.get(key)
  if (known) return known
  const read = readDigest(path).catch((error: unknown) => {
    digests.delete(key)
    throw error
  })
  digests.set(key, read)
  return read
}

const readDigest = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
