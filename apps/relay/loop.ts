import { type Loop, startLoop as start } from '../shared/process/repeat.ts'
import type { Logger } from '../shared/telemetry.ts'

export type { Loop }

/** A loop whose failures are logged once per kind, and whose pause grows with them to 5 s. */
export const startLoop = (name: string, log: Logger, every_ms: number, turn: () => Promise<boolean>): Loop => {
  let last = ''
  const act = async () => {
    const more = await turn()
    if (last) log.info({ loop: name }, 'going on')
    last = ''
    return more
  }
  const failed = (err: unknown) => {
    const { message } = err as Error
    if (message !== last) log.warn({ loop: name, err }, 'turn failed; trying again')
    last = message
  }
  return start(name, act, { every_ms, failed, pause: (failures) => Math.min(50 * 2 ** failures, 5000) })
}
