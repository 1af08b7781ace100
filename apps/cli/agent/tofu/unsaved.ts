import { cpSync, lstatSync, mkdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { readPlain } from '../../../shared/run/plain.ts'
import { keepSealed } from '../tools/seal.ts'
import type { Job, Verdict } from '../tools/types.ts'

/** The tool writes it where it runs: in the module, a folder of its attempt's own. */
export const UNSAVED = 'errored.tfstate'
export const MODULE = 'module'
export const PUSH = 'Push it before you do anything else.'
/** An artifact may have 256 MiB. */
const MAX_STATE = 255 * 1024 * 1024

/**
 * Keeps the state that an apply could not write: it is the only record of the new objects. First on this machine, where
 * a network that is lost, a closed attempt or a large file cannot prevent it; the tool can push it from there.
 */
export const keepUnsaved = async (job: Job, found: string, progress: string): Promise<Verdict> => {
  const { operation_id, node_id, fence } = job.work
  // The name of the node comes from the control plane.
  const name = `${operation_id}-${node_id}-${fence}.tfstate`.replace(/[^\w.:-]/g, '_')
  const path = join(job.file.state_dir, 'unsaved', name)
  const here = (() => {
    try {
      unsavedIn(job.file.state_dir)
      move(found, path)
      return true
    } catch {
      return false
    }
  })()
  const bytes = await readPlain(here ? path : found, MAX_STATE).catch(() => undefined)
  const sent =
    Buffer.isBuffer(bytes) &&
    (await keepSealed(job, { name: UNSAVED, kind: 'unsaved_state' }, bytes).then(
      () => true,
      () => false,
    ))
  const where = here ? `is ${path} on the agent's machine` : sent ? 'is a sealed artifact' : 'could not be kept'
  const message = `The state could not be written: it ${where}. ${PUSH} ${progress}`
  return { status: 'unknown', class: 'unsaved_state', message }
}

/** Moves the unsaved state of an attempt whose agent died to the others. Returns where it is. Throws if it cannot. */
export const rescueUnsaved = (state_dir: string, folder: string): string | undefined => {
  const found = join(folder, MODULE, UNSAVED)
  if (!lstatSync(found, { throwIfNoEntry: false })) return undefined
  const kept = join(unsavedIn(state_dir), `${basename(folder)}.tfstate`)
  move(found, kept)
  return kept
}

const unsavedIn = (state_dir: string): string => {
  const folder = join(state_dir, 'unsaved')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** A link is moved, never followed. */
const move = (from: string, to: string): void => {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  }
}
