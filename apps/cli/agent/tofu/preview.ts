import { join } from 'node:path'
import type { SavedPlan } from '../../../shared/contracts/client/preview.ts'
import { readPlain } from '../../../shared/run/plain.ts'
import { noteVersion } from '../tools/program.ts'
import { sealedWith } from '../tools/seal.ts'
import { failed, refusedBy, type Tool } from '../tools/types.ts'
import { changesOf, planIn, strangerIn } from './changes.ts'
import { baseOf, openModule } from './module.ts'

/** The largest artifact, with room for the seal. */
const MAX_PLAN = 255 * 1024 * 1024

const MAX_ADDRESSES = 100
const ADDRESS = /^[A-Za-z_]\P{Cc}{0,999}$/u
const isAddresses = (given: unknown): given is string[] =>
  Array.isArray(given) && given.length <= MAX_ADDRESSES && given.every((one) => ADDRESS.test(one))

/** `opentofu.preview`: reads without a lock, keeps the sealed plan file by digest, returns changes without secrets. */
export const preview: Tool = async (job) => {
  const { destroy = false, targets = [], replace = [] } = job.work.inputs as Record<string, unknown>
  if (!isAddresses(targets) || !isAddresses(replace))
    return refusedBy(`"targets" and "replace" must be lists of at most ${MAX_ADDRESSES} addresses of resources.`)
  const module = await openModule(job, { plans: true, makes: true })
  const base = await baseOf(module)
  const path = join(job.home, 'plan.bin')
  const options = ['-no-color', '-input=false', '-lock=false', '-detailed-exitcode', `-out=${path}`]
  options.push(
    ...module.vars,
    ...module.parallel,
    ...targets.map((one) => `-target=${one}`),
    ...replace.map((one) => `-replace=${one}`),
  )
  // Its text output may show values that its JSON marks as sensitive, so only the JSON is read.
  const { code } = await module.tofu(['plan', ...options, ...(destroy === true ? ['-destroy'] : [])], { quiet: true })
  if (code !== 0 && code !== 2) return failed('tool_failed', 'plan failed: see the log. No change was made.')
  const shown = await module.tofu(['show', '-json', path], { quiet: true })
  if (shown.code !== 0) return failed('tool_failed', 'The saved plan cannot be read. No change was made.')
  const saved = await readPlain(path, MAX_PLAN)
  if (!Buffer.isBuffer(saved)) return failed('tool_failed', `The saved plan is no file of at most ${MAX_PLAN} bytes.`)
  const told = planIn(shown.out)
  const stranger = strangerIn(told, [...targets, ...replace])
  if (stranger !== undefined)
    return failed('tool_failed', `The plan has no resource "${stranger}". No change was made.`, false)
  const changes = changesOf(told, job.mask)
  noteVersion(job, told.terraform_version)
  const made: Omit<SavedPlan, 'plan'> = {
    ...{ format: 'signalbox/preview@1', binding: 'exact', tool: String(told.terraform_version), base },
    ...{ ...module.taken, place: module.place, ...changes, no_change: changes.no_change && code === 0 },
    ...(targets.length > 0 && { targets }),
  }
  return { status: 'succeeded', outputs: { preview: await sealedWith(job, 'plan', made, saved) } }
}
