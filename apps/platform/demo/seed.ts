import type { Run } from '../run/supervisor.ts'
import { ensureAccounts, writeDemo } from './accounts.ts'
import type { Account } from './client.ts'
import { runScenario } from './scenario.ts'

export type SeedContext = {
  gateway_url: string
  run: Run
  signalbox_dir: string
  hosts: number
  log: (text: string) => void
}

/**
 * Seeds the demo of console.md 13 once: its people, then its catalog and operations, all through the public API. A
 * seed that was cut short goes on where it stopped. Answers the accounts, and whether they are new.
 */
export const seedDemo = async (context: SeedContext): Promise<{ users: Account[]; fresh: boolean }> => {
  const { gateway_url, run, signalbox_dir, hosts, log } = context
  const demo = await ensureAccounts(gateway_url, signalbox_dir)
  if (demo.seeded) return { users: demo.users, fresh: false }
  log(`accounts ${demo.users.map(({ username }) => username).join(', ')}`)
  const fleet_url = `http://127.0.0.1:${run.apps.fleet?.port}`
  await runScenario({ gateway_url, fleet_url, hosts, accounts: demo.users, progress: log })
  writeDemo(signalbox_dir, { ...demo, seeded: true })
  return { users: demo.users, fresh: true }
}
