import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seal as sealBy, unseal as unsealBy } from '../../../shared/codec/seal.ts'
import { sha256Hex } from '../../../shared/data/digest.ts'
import { type Job, refusal } from './types.ts'

/** Saved plans contain secrets, so they leave the agent sealed, by a key file that the agents of one pool share. */
const MAGIC = Buffer.from('sbx1')

const KEY_BYTES = 32

const keyOf = (state_dir: string): Buffer => {
  const path = join(state_dir, 'seal.key')
  mkdirSync(state_dir, { recursive: true })
  if (!existsSync(path)) makeKey(path)
  const key = readFileSync(path)
  if (key.length === KEY_BYTES) return key
  throw refusal(
    `${path} is not a key of ${KEY_BYTES} bytes. Copy it from another agent of the pool; if none has it, remove the file and retry the previews.`,
  )
}

/** Whole or not at all, and never in place of the key of another agent that was faster. */
const makeKey = (path: string): void => {
  const making = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(making, randomBytes(KEY_BYTES), { flag: 'wx', mode: 0o600, flush: true })
  try {
    linkSync(making, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(making)
  }
}

/** Seals bytes for one operation; they do not open in another. */
export const seal = (state_dir: string, operation_id: string, bytes: Buffer): Buffer =>
  Buffer.concat([MAGIC, sealBy(keyOf(state_dir), operation_id, bytes)])

/** The bytes; `undefined` if they were changed, or sealed by another key or for another operation. */
export const unseal = (state_dir: string, operation_id: string, sealed: Buffer): Buffer | undefined => {
  if (!sealed.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const key = keyOf(state_dir)
  try {
    return unsealBy(key, operation_id, sealed.subarray(MAGIC.length))
  } catch {
    return undefined
  }
}

/** Keeps bytes as a sealed artifact. Returns its digest and that of the bytes. */
export const keepSealed = async ({ file, work, keep }: Job, name: string, kind: string, bytes: Buffer) => {
  const about = { name: `${name}.sealed`, kind, media_type: 'application/octet-stream' }
  const { sha256 } = await keep(about, seal(file.state_dir, work.operation_id, bytes))
  return { sha256, content_sha256: sha256Hex(bytes) }
}

type Kept = { sha256: string; content_sha256: string }
/** Returns the approved bytes exactly; otherwise ends the job. */
export const fetchSealed = async (job: Job, what: 'plan' | 'objects', kept: Kept): Promise<Buffer> => {
  const [does, them, has] = what === 'plan' ? ['does', 'it, or it was', 'has'] : ['do', 'them, or they were', 'have']
  const bytes = unseal(job.file.state_dir, job.work.operation_id, await job.fetch(kept.sha256))
  if (!bytes)
    throw refusal(`The saved ${what} ${does} not open: a different key sealed ${them} changed. No change was made.`)
  if (sha256Hex(bytes) !== kept.content_sha256)
    throw refusal(`The saved ${what} ${has} a different digest than the approved one. No change was made.`)
  return bytes
}
