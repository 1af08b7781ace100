import { Value } from 'typebox/value'
import { Preview } from '../../../shared/contracts/client/preview.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { pictureOf } from '../tools/picture.ts'
import { Ended, failed, type Job, refusedBy, stale, type Tool } from '../tools/types.ts'
import { planIn } from './changes.ts'
import { type Module, openModule } from './module.ts'

/** The lock and its holder, as far as the backend reports them. */
type Lock = { id: string; who?: string; since?: string; operation?: string }

/** Finds the lock in a tool's output; `undefined` if the output is about something else. */
export const lockIn = (said: string): Lock | undefined => {
  const text = said.replace(/\s+/g, ' ')
  if (!/state lock|already locked/i.test(text)) return undefined
  // The http backend reports the requester as the holder, next to the real holder's lock id.
  const [, foreign] = /already locked: ID=(\S+)/.exec(text) ?? []
  if (foreign !== undefined) return { id: foreign }
  const [, id, operation, who, since] =
    /Lock Info: ID: (\S+) Path: .*?Operation: (\S*) Who: (.*?) ?Version: .*?Created: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)/.exec(
      text,
    ) ?? []
  if (id === undefined) return { id: 'unknown' }
  return { id, ...(who && { who }), ...(since && { since: `${since} UTC` }), ...(operation && { operation }) }
}

/** Says who holds the state, since when, and by which lock. */
export const lockWords = ({ id, who, since }: Lock): string =>
  `The state is locked${who ? ` by ${who}` : ''}${since ? ` since ${since}` : ''} (lock ${id}).`

/** Finds who holds the lock now by taking it for a moment; writes no state. */
const lockOf = async ({ tofu }: Module, mask: Job['mask']): Promise<Lock | undefined> => {
  const words: string[] = []
  const ask = ['state', 'rm', '-dry-run', '-no-color', '-lock-timeout=0s', 'terraform_data.signalbox']
  const { code } = await tofu(ask, { log: (text) => words.push(text) })
  const said = words.join('\n')
  if (code === 0 || /no state file/i.test(said)) return undefined
  const lock = lockIn(said)
  if (!lock) throw new Ended(failed('tool_failed', `The state cannot be read: ${mask(said).slice(0, 500)}`))
  return lock
}

/** `opentofu.lock`: reports who holds the state. It is the preview of `opentofu.unlock`, so a gate shows it. */
export const lock: Tool = async (job) => {
  const module = await openModule(job)
  const { out } = await module.tofu(['version', '-json'], { quiet: true })
  const { terraform_version } = planIn(out)
  const preview = {
    ...{ format: 'signalbox/preview@1', binding: 'checked', tool: String(terraform_version) },
    ...{ ...module.taken, place: module.place, ...drawn(await lockOf(module, job.mask), job.mask), drift: 0 },
  }
  return { status: 'succeeded', outputs: { preview } }
}

const drawn = (held: Lock | undefined, mask: (text: string) => string) => {
  const fields = Object.entries(held ?? {}).map(([name, value]) => ({ path: `/${name}`, before: mask(value) }))
  return pictureOf(held ? [{ id: `lock ${held.id}`, action: 'delete', fields }] : [])
}

/** Matches an id, never an option. */
const ID = /^[A-Za-z0-9][\w.:/+=-]{0,199}$/

/**
 * `opentofu.unlock`: removes exactly the lock that it names. The tool does not compare the id with every backend, so it
 * is compared here first. A lock that no longer exists is not a failure.
 */
export const unlock: Tool = async (job) => {
  const { lock_id, preview } = job.work.inputs as Record<string, unknown>
  if (typeof lock_id !== 'string' || !ID.test(lock_id)) return refusedBy('"lock_id" must be the id of a lock.')
  const module = await openModule(job, { preview: Value.Check(Preview, preview) ? preview : undefined })
  const held = await lockOf(module, job.mask)
  if (!held) return { status: 'succeeded', outputs: { unlocked: false } }
  if (held.id !== lock_id) {
    const remedy = 'No lock was removed. Ask its holder, or plan again with that lock.'
    return failed('conflict', `${lockWords(held)} The lock ${lock_id} is a different one. ${remedy}`, false)
  }
  if (preview !== undefined && !(isObject(preview) && preview.digest === drawn(held, job.mask).digest))
    return stale(`${lockWords(held)} The gate showed a different holder.`)
  const words: string[] = []
  const { code } = await module.tofu(['force-unlock', '-force', '-no-color', lock_id], {
    log: (text, line) => {
      words.push(text)
      job.log(text, line)
    },
  })
  if (code === 0) return { status: 'succeeded', outputs: { unlocked: true } }
  return failed('tool_failed', `The lock was not removed. ${words.join(' ').replace(/\s+/g, ' ').trim()}`, false)
}
