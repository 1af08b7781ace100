import { join } from 'node:path'
import { failed, type Tool } from '../tools/types.ts'
import { changesOf, driftIn, planIn } from './changes.ts'
import { openModule } from './module.ts'
import { recordOf } from './record.ts'

const MAX_NAMED = 100

/**
 * `opentofu.drift`: compares the real objects with the state by a refresh-only plan. It changes neither and takes no
 * lock. Its outputs are the record for the catalog and the resulting health.
 */
export const drift: Tool = async (job) => {
  const module = await openModule(job, { plans: true })
  const path = join(job.home, 'drift.bin')
  const options = ['-refresh-only', '-no-color', '-input=false', '-lock=false', `-out=${path}`]
  const more = [...module.vars, ...module.parallel]
  const { code } = await module.tofu(['plan', ...options, ...more], { quiet: true })
  if (code !== 0) return failed('tool_failed', 'The refresh failed: see the log. No change was made.')
  const shown = await module.tofu(['show', '-json', path], { quiet: true })
  if (shown.code !== 0) return failed('tool_failed', 'The refresh cannot be read. No change was made.')
  const drifted = driftIn(planIn(shown.out))
  const { changes, digest } = changesOf({ resource_changes: drifted }, job.mask)
  for (const { id, action, fields } of changes)
    job.log(
      `${id}: ${action === 'delete' ? 'is gone' : `differs in ${fields.map((field) => field.path).join(', ')}`}`,
      { stream: 'log', level: 'warn' },
    )
  const resources = changes.map(({ id }) => id).slice(0, MAX_NAMED)
  const status = changes.length === 0 ? 'in_sync' : 'drifted'
  const found = { status, at: new Date().toISOString(), changes: drifted.length, resources, digest }
  return {
    status: 'succeeded',
    outputs: {
      drift: { ...found, differences: changes },
      catalog: { ...(await recordOf(module, job.mask)), drift: found },
      health: status === 'in_sync' ? 'healthy' : 'degraded',
    },
  }
}
