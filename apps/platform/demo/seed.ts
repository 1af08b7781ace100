import type { Run } from '../run/supervisor.ts'
import { ensureAccounts, writeDemo } from './accounts.ts'
import { type Account, ApiError, ENDLESS } from './client.ts'
import { runScenario } from './scenario.ts'

export type SeedContext = {
  run: Run
  signalbox_dir: string
  /** How many hosts a new seed gets. */
  hosts: number
  log: (text: string) => void
}

/** An interrupted seed: its step, and how to resume it. */
export class SeedStopped extends Error {
  constructor(step: string, cause: unknown) {
    const error = cause as Error
    const why = error instanceof ApiError ? `${error.status} ${error.body.code ?? error.body.category}` : error.message
    super(`stopped at ${step} (${why}). All else runs. Go on: npm run demo -- --seed`, { cause })
  }
}

/**
 * Seeds the demo of console.md 13 once: its people, then its catalog and operations, all through the public API. An
 * interrupted seed resumes where it stopped, and waits while the platform is busy. Returns the accounts and whether
 * they are new.
 */
export const seedDemo = async (context: SeedContext): Promise<{ users: Account[]; fresh: boolean }> => {
  const { run, signalbox_dir, log } = context
  const gateway_url = run.gateway
  let step = 'the accounts'
  try {
    const demo = await ensureAccounts(gateway_url, signalbox_dir, ENDLESS)
    if (demo.seeded) return { users: demo.users, fresh: false }
    const hosts = demo.hosts ?? context.hosts
    writeDemo(signalbox_dir, { ...demo, hosts })
    log(`accounts ${demo.users.map(({ username }) => username).join(', ')}`)
    const fleet_url = `http://127.0.0.1:${run.apps.fleet?.port}`
    const at = (next: string) => {
      step = next
    }
    await runScenario({ gateway_url, fleet_url, hosts, accounts: demo.users, progress: log, at })
    writeDemo(signalbox_dir, { ...demo, hosts, seeded: true })
    return { users: demo.users, fresh: true }
  } catch (error) {
    throw new SeedStopped(step, error)
  }
}
