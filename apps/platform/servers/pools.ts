import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ROOT } from '../base/paths.ts'

/** The pools whose agents take work from NATS, by the executor policy. The worker refuses an unreadable file. */
export const streamedPools = (): string[] => {
  const file = process.env.WORKER__EXECUTORS__POLICY_FILE ?? join(ROOT, 'activities/executors/policy.yaml')
  try {
    const { pools } = parse(readFileSync(file, 'utf8')) as { pools: Record<string, { mode?: string }> }
    return Object.keys(pools).filter((name) => pools[name]?.mode === 'nats')
  } catch {
    return []
  }
}
