import { setTimeout as delay } from 'node:timers/promises'
import { bornAt, commandOf, signalGroup } from '../base/pids.ts'
import { forgetChildren, lives, type Recorded, recordedChildren } from '../base/record.ts'
import type { Screen } from '../base/screen.ts'
import { dataFolder, postmasterOf } from '../servers/postgres.ts'

const GRACE_MS = 8000

/** Ends the apps and servers that a killed platform has left running on this folder, and no other processes. */
export const endOrphans = async (dir: string, screen: Screen): Promise<void> => {
  const recorded = [...recordedChildren(dir), ...postmaster(dir)].filter(lives)
  const orphans = [...new Map(recorded.map((process) => [process.pid, process])).values()]
  if (orphans.length > 0)
    screen.line('platform', `ending processes that an earlier run left behind (${orphans.length})`)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const left = orphans.filter(lives)
    // Fast shutdown for Postgres, because SIGTERM would wait for its clients.
    for (const { name, pid } of left) signalGroup(pid, name === 'postgres' && signal === 'SIGTERM' ? 'SIGINT' : signal)
    const end = performance.now() + GRACE_MS
    while (orphans.some(lives) && performance.now() < end) await delay(50)
  }
  forgetChildren(dir)
}

/** Postgres records which process has its folder. The id may be reused, so the command line must name the folder. */
const postmaster = (dir: string): Recorded[] => {
  const data = dataFolder(dir)
  const pid = postmasterOf(data)?.pid
  if (!pid || !commandOf(pid).includes(data)) return []
  return [{ name: 'postgres', pid, born: bornAt(pid) }]
}
