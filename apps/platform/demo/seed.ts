import type { Managed, UnitEvents } from '../base/process.ts'
import type { Run } from '../run/supervisor.ts'
import { ensureAccounts, writeDemo } from './accounts.ts'
import { type Account, ApiError, accountOf, ENDLESS, signIn } from './client.ts'
import { waitForEnd } from './operations.ts'
import { type Door, demoTools, startRunner, toolIntent } from './runner.ts'
import { ensureOperation, passGate, runScenario } from './scenario.ts'

/** How many hosts the demo has unless a start says otherwise. */
export const DEMO_HOSTS = 24

export type SeedContext = {
  run: Run
  signalbox_dir: string
  /** How many hosts a new seed gets. */
  hosts: number
  log: (text: string) => void
}

/** An interrupted seed: its step, and how to resume it. */
class SeedStopped extends Error {
  constructor(step: string, cause: unknown) {
    const error = cause as Error
    const why = error instanceof ApiError ? `${error.status} ${error.body.code ?? error.body.category}` : error.message
    super(`stopped at ${step} (${why}). Everything else is running. Resume: npm run demo -- --seed`, { cause })
  }
}

/**
 * Seeds the demo of console.md 13 once through the public API: its people, then catalog and operations. An interrupted
 * seed resumes where it stopped and waits while the platform is busy. Returns the accounts and whether they are new.
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

const FIRST = '1.0.0'

/** Starts the runner, and shows one change by each real tool that this machine has, approved and done. */
export const seedTools = async (
  door: Door,
  users: Account[],
  events: Partial<UnitEvents>,
  started: (runner: Managed) => void,
  log: (text: string) => void,
): Promise<void> => {
  const person = (name: string) => signIn(door.gateway_url(), accountOf(users, name, 'start with --reset'), ENDLESS)
  const [ada, olga, eva] = [await person('ada'), await person('olga'), await person('eva')]
  const runner = await startRunner(ada, door, events)
  if (!runner) return
  started(runner)
  for (const { name, lacks } of demoTools(door.dir)) {
    const intent = toolIntent(name, FIRST)
    if (lacks) {
      log(`no "${intent.title}": ${lacks}`)
      continue
    }
    const { operation_id } = await ensureOperation(olga, intent.title, intent)
    await passGate(eva, operation_id, 'Reviewed: exactly this change.')
    const { status } = await waitForEnd(eva, operation_id, ENDLESS.ms)
    log(`"${intent.title}" ${status}: its preview, its gate and its evidence are in Operations`)
  }
}
