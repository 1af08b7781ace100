import { setTimeout as delay } from 'node:timers/promises'
import { ensureAccounts } from '../../apps/platform/demo/accounts.ts'
import { signIn } from '../../apps/platform/demo/client.ts'
import { ensureKeys } from '../../apps/platform/run/keys.ts'
import { member } from '../platform/support/crowd.ts'
import { freePort } from '../support/ports.ts'
import { type Site, TEST_SETTINGS } from '../support/stack.ts'
import type { Harm } from './kills.ts'

const READY = /Signalbox is ready/
const READY_MS = 300_000

/**
 * A platform as `npm start` runs it. Its harm is `kill -9` of the supervisor alone at random moments, on average `gap_s`
 * seconds apart: the next start ends the processes that were left and resumes with their data.
 */
export const startSupervised = async ({ kills, gap_s }: { kills: number; gap_s: number }) => {
  // The ports of the table may belong to another platform by the time of the next start, and callers keep their addresses.
  const [gateway_port, fleet_port] = await Promise.all([freePort(), freePort()])
  const ports = { GATEWAY__HTTP__PORT: String(gateway_port), FLEET__HTTP__PORT: String(fleet_port) }
  const one = member(0, { ...TEST_SETTINGS, ...ports })
  let running = one.start()
  await running.says(READY, READY_MS)
  const { gateway, postgres } = one.run()
  const site: Site = {
    ...{ dir: one.dir, context: { keys: ensureKeys(one.dir) }, gateway_url: gateway, database_url: postgres },
    url: (name) => `http://127.0.0.1:${one.run().apps[name]?.port}`,
    people: async () => {
      const { users } = await ensureAccounts(gateway, one.dir)
      return Object.fromEntries(
        await Promise.all(users.map(async (user) => [user.username, await signIn(gateway, user)])),
      )
    },
  }
  const harm: Harm = async ({ dice, say }) => {
    const moments = dice(0)
    const times: number[] = []
    while (times.length < kills) {
      await delay(moments.between(0, 2 * gap_s * 1000))
      say(`kill ${times.length + 1} of ${kills}: the supervisor`)
      const died = performance.now()
      process.kill(one.supervisor(), 'SIGKILL')
      await running.ended
      running = one.start()
      await running.says(READY, READY_MS)
      times.push(performance.now() - died)
    }
    return { deaths: new Map([['supervisor', times]]), stalls: 0, breaks: 0 }
  }
  const stop = async () => {
    running.signal('SIGTERM')
    await running.ended
    one.remove()
  }
  return { site, harm, stop }
}
