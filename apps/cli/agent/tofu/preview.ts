import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SavedPlan } from '../../../shared/contracts/client/preview.ts'
import { isObject } from '../../../shared/data/pointer.ts'
import { keepSealed } from '../tools/seal.ts'
import { failed, refusedBy, type Tool } from '../tools/types.ts'
import { changesOf } from './changes.ts'
import { baseOf, openModule } from './module.ts'

/**
 * `opentofu.preview`: plans, keeps the plan file, sealed, under its digest, and returns the changes without their
 * secrets. It only reads and takes no lock.
 */
export const preview: Tool = async (job) => {
  const { variables = {}, destroy = false } = job.work.inputs as Record<string, unknown>
  if (!isObject(variables)) return refusedBy('"variables" must be an object.')
  const module = await openModule(job)
  writeFileSync(join(module.dir, 'zz_signalbox.auto.tfvars.json'), JSON.stringify(variables), { mode: 0o644 })
  const base = await baseOf(module)
  const path = join(job.folder, 'plan.bin')
  const options = ['-no-color', '-input=false', '-lock=false', '-detailed-exitcode', `-out=${path}`]
  // Its text output may show values that its JSON marks as sensitive, so only the JSON is read.
  const { code } = await module.tofu(['plan', ...options, ...(destroy === true ? ['-destroy'] : [])], { quiet: true })
  if (code !== 0 && code !== 2) return failed('tool_failed', 'plan failed: see the log. No change was made.')
  const shown = await module.tofu(['show', '-json', path], { quiet: true })
  if (shown.code !== 0) return failed('tool_failed', 'The saved plan cannot be read. No change was made.')
  const plan = await keepSealed(job, 'plan', 'saved_plan', readFileSync(path))
  const told = JSON.parse(shown.out) as Parameters<typeof changesOf>[0] & { terraform_version?: string }
  const changes = changesOf(told, job.mask)
  const made: SavedPlan = {
    ...{ format: 'signalbox/preview@1', binding: 'exact', tool: String(told.terraform_version), base },
    ...{ source_digest: module.source_digest, plan, ...changes },
  }
  return { status: 'succeeded', outputs: { preview: made } }
}
