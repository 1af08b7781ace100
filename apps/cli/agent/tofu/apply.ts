import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { SavedPlan } from '../../../shared/contracts/client/preview.ts'
import { isObject, objectIn } from '../../../shared/data/pointer.ts'
import { parseDigits } from '../../../shared/run/exact.ts'
import { writeOwn } from '../tools/host.ts'
import { fitting } from '../tools/picture.ts'
import { noteVersion } from '../tools/program.ts'
import { fetchSealed } from '../tools/seal.ts'
import { Ended, failed, inForce, type Job, refusedBy, stale, type Tool, type Verdict } from '../tools/types.ts'
import { lockIn, lockWords } from './lock.ts'
import { baseOf, type Module, openModule } from './module.ts'
import { MAX_LIST, recordOf } from './record.ts'
import { keepUnsaved, UNSAVED } from './unsaved.ts'

const LOCK_WAIT_S = 30
const UNREAD = 'Every change is made, but the state could not be read afterwards. Retry the preview to record it.'
const LOCKED = 'Retry when its holder has ended. Only if it has died: remove this lock (opentofu.unlock).'

/** `opentofu.apply`: applies exactly the previewed plan file, and refuses if the state or the source has changed. */
export const apply: Tool = async (job) => {
  const { preview: given } = job.work.inputs as Record<string, unknown>
  if (!Value.Check(SavedPlan, given)) return refusedBy('"preview" is not a preview: pass the output of its node.')
  const plan = await fetchSealed(job, 'plan', given)
  const module = await openModule(job, { preview: given })
  if (module.taken.source_digest !== given.source_digest)
    return stale('The source files changed since this plan was made.')
  const now = await baseOf(module)
  const { lineage, serial } = given.base
  if (lineage !== null && now.lineage !== lineage)
    return stale('The state differs from the one this plan was made for.')
  if (now.serial !== serial)
    return stale(`The state has changed since this plan was made (serial ${serial}, now ${now.serial}).`)
  job.executed.content_sha256 = given.plan.content_sha256
  return await carryOut(job, module, writeOwn(job, 'plan.bin', plan))
}

const orEnded = <T>(asked: Promise<T>): Promise<T | Ended> =>
  asked.catch((error: unknown) => {
    if (error instanceof Ended) return error
    throw error
  })

type Said = { errors: string[]; begun: Set<string>; done: string[]; outputs: Record<string, unknown> }

/** Reads the output of `apply -json` line by line; its messages become the log. */
const reader = (job: Job, said: Said): Job['log'] => {
  return (text, line) => {
    const event = objectIn(text, parseDigits)
    if (!event || !('@message' in event)) return job.log(text, line)
    const { type } = event
    if (type === 'version') noteVersion(job, event.tofu ?? event.terraform)
    const hook = isObject(event.hook) && isObject(event.hook.resource) ? String(event.hook.resource.addr) : ''
    if (type === 'apply_start') said.begun.add(hook)
    if (type === 'apply_complete') said.done.push(hook)
    if (type === 'diagnostic' && isObject(event.diagnostic) && event.diagnostic.severity === 'error')
      said.errors.push(
        job
          .mask(`${event.diagnostic.summary}. ${event.diagnostic.detail ?? ''}`)
          .replace(/\s+/g, ' ')
          .trim(),
      )
    if (type === 'outputs' && isObject(event.outputs))
      for (const [name, output] of Object.entries(event.outputs))
        if (isObject(output) && output.sensitive === false) said.outputs[name] = output.value
    const level = event['@level'] === 'error' ? 'error' : event['@level'] === 'warn' ? 'warn' : 'info'
    job.log(String(event['@message']), { stream: 'log', level })
  }
}

const carryOut = async (job: Job, module: Module, plan: string): Promise<Verdict> => {
  const said: Said = { errors: [], begun: new Set(), done: [], outputs: {} }
  const { lock_wait_s = LOCK_WAIT_S } = job.work.inputs as { lock_wait_s?: number }
  const options = ['-json', '-input=false', `-lock-timeout=${lock_wait_s}s`, ...module.parallel]
  const ended = await orEnded(module.tofu(['apply', ...options, plan], { log: reader(job, said) }))
  const progress = `${said.done.length} of ${said.begun.size} begun changes are done${said.done.length > 0 ? `: ${said.done.slice(0, 20).join(', ')}` : ''}.`
  const unsaved = join(module.dir, UNSAVED)
  if (lstatSync(unsaved, { throwIfNoEntry: false })) return keepUnsaved(job, unsaved, progress)
  if (ended instanceof Ended)
    return { ...ended.verdict, ...('message' in ended.verdict && { message: `${ended.verdict.message} ${progress}` }) }
  if (ended.code === 0) {
    const record = await recordOf(module, job.mask).catch(() => undefined)
    if (!record) return failed('partial', `${progress} ${UNREAD}`, false)
    const { serial } = record
    const catalog = { ...record, ...inForce(job), drift: { status: 'in_sync', at: new Date().toISOString() } }
    let left = MAX_LIST
    const outputs = Object.fromEntries(
      Object.entries(said.outputs).filter(([name, value]) => {
        const size = Buffer.byteLength(JSON.stringify(value))
        const fits = size <= left
        if (fits) left -= size
        else job.log(`The output "${name}" is too large to be returned.`, { level: 'warn' })
        return fits
      }),
    )
    return { status: 'succeeded', outputs: { outputs, applied: fitting(said.done, MAX_LIST), serial, catalog } }
  }
  const [first = 'apply failed: see the log.'] = said.errors
  if (said.begun.size > 0) return failed('partial', `${progress} ${first}`, false)
  if (/saved plan is stale/i.test(first)) return stale('The state has changed since this plan was made.')
  const lock = lockIn(first)
  if (lock) return failed('locked', `${lockWords(lock)} No change was made. ${LOCKED}`, true)
  return failed('tool_failed', `${first} No change was made.`, false)
}
