import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ROOT } from '../base/paths.ts'

/** The pools whose agents take work from NATS, as the executor policy says. A file that cannot be read is the worker's to refuse. */
export const streamedPools = (): string[] => {
  const file = process.env.WORKER__EXECUTORS__POLICY_FILE ?? join(ROOT, 'activities/executors/policy.yaml')
  try {
    const { pools } = parse(readFileSync(file, 'utf8')) as { pools: Record<string, { mode?: string }> }
    return Object.keys(pools).filter((name) => pools[name]?.mode === 'nats')
  } catch {
    return []
  }
}
