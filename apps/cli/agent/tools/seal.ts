import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { seal as sealBy, unseal as unsealBy } from '../../../shared/codec/seal.ts'
import { digest, sha256Hex } from '../../../shared/data/digest.ts'
import { maskIn } from '../../../shared/data/mask.ts'
import { storableJson } from '../../../shared/run/storable.ts'
import type { AgentFile } from './file.ts'
import { Ended, type Job, refusal } from './types.ts'

/** Saved plans contain secrets, so they leave the agent sealed, by a key file that the agents of one pool share. */
const MAGIC = Buffer.from('sbx2')
/** Earlier agents sealed for the operation alone, without the preview. */
const EARLIER = Buffer.from('sbx1')

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

/** Tells keys apart. */
const nameOf = (state_dir: string): string => sha256Hex(keyOf(state_dir)).slice(0, 8)

/** Work that carries out a saved plan demands this label, so it goes to an agent that can open the plan. */
export const keyLabel = ({ state_dir, tofu, kubernetes }: AgentFile): { seal_key?: string } => {
  try {
    return tofu || kubernetes ? { seal_key: nameOf(state_dir) } : {}
  } catch {
    // The key is broken: each job that needs it says so.
    return {}
  }
}

/** For people, who see by it whether the agents of a pool share a key. */
export const keyWords = ({ state_dir }: { state_dir: string }): string => {
  try {
    return `Saved plans are sealed by ${join(state_dir, 'seal.key')} (${nameOf(state_dir)}). Only agents of the pool that have a copy of it can apply them.`
  } catch (error) {
    return error instanceof Ended && 'message' in error.verdict ? error.verdict.message : (error as Error).message
  }
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

/** Seals bytes for one subject; they do not open for another. */
export const seal = (state_dir: string, subject: string, bytes: Buffer): Buffer =>
  Buffer.concat([MAGIC, sealBy(keyOf(state_dir), subject, bytes)])

/** The bytes; `undefined` if they were changed, or sealed by another key, for another subject or in another form. */
export const unseal = (state_dir: string, subject: string, sealed: Buffer, magic = MAGIC): Buffer | undefined => {
  if (!sealed.subarray(0, magic.length).equals(magic)) return undefined
  const key = keyOf(state_dir)
  try {
    return unsealBy(key, subject, sealed.subarray(magic.length))
  } catch {
    return undefined
  }
}

/** Keeps bytes as a sealed artifact. Returns its digest and that of the bytes. */
export const keepSealed = async (
  { file, work, keep }: Job,
  { name, kind, of = work.operation_id }: { name: string; kind: string; of?: string },
  bytes: Buffer,
) => {
  const about = { name: `${name}.sealed`, kind, media_type: 'application/octet-stream' }
  const { sha256 } = await keep(about, seal(file.state_dir, of, bytes))
  return { sha256, content_sha256: sha256Hex(bytes) }
}

type Sealed = 'plan' | 'objects'
/** The operation and all that a reader of the preview sees. */
const subjectOf = ({ work }: Job, shown: object): string => `${work.operation_id} ${digest(shown)}`

/** The preview with its sealed bytes. They open only with the preview exactly as it was shown, so no other stands for it. */
export const sealedWith = async <T extends object>(job: Job, name: Sealed, made: T, bytes: Buffer) => {
  const shown = JSON.parse(storableJson(maskIn(made, job.mask))) as T
  const plan = await keepSealed(job, { name, kind: 'saved_plan', of: subjectOf(job, shown) }, bytes)
  return { ...shown, plan: { ...plan, key: nameOf(job.file.state_dir) } }
}

/** An undo shows its preview to no one: objects that an earlier agent saved and applied need not be bound to it. */
const undoes = ({ work }: Job): boolean => work.job === 'kubernetes.undo' && /:c\d+$/.test(work.key)

/** Returns the approved bytes exactly; otherwise ends the job. */
export const fetchSealed = async (
  job: Job,
  what: Sealed,
  { plan: kept, ...shown }: { plan: { sha256: string; content_sha256: string } },
): Promise<Buffer> => {
  const [does, them, has] = what === 'plan' ? ['does', 'it', 'has'] : ['do', 'them', 'have']
  const { state_dir } = job.file
  const sealed = await job.fetch(kept.sha256)
  const bytes =
    unseal(state_dir, subjectOf(job, shown), sealed) ??
    (undoes(job) ? unseal(state_dir, job.work.operation_id, sealed, EARLIER) : undefined)
  if (!bytes)
    throw refusal(
      `The saved ${what} ${does} not open: a different key sealed ${them}, or the preview is not the one that was made. No change was made. Retry the preview.`,
    )
  if (sha256Hex(bytes) !== kept.content_sha256)
    throw refusal(`The saved ${what} ${has} a different digest than the approved one. No change was made.`)
  return bytes
}
