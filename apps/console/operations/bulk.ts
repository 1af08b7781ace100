import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { Command } from '../api/commands.ts'
import type { OperationRow } from '../api/types.ts'
import { mayRepeat } from '../command/each.ts'
import type { Tried } from '../command/send.ts'
import type { Effect, Mode, OperationCommand } from './effects.tsx'

/** The command on one of several operations. It accepts no changed target: each of those is reviewed on its own page. */
export const commandOn = (operation_id: string, command: OperationCommand, mode: Mode, reason: string): Command => ({
  path: `/v1/operations/${encodeURIComponent(operation_id)}/${command}`,
  body: { ...(command === 'cancel' ? { mode } : {}), reason },
})

export type Parted = {
  /** Those that the command is sent to, each with its effect; null for a pause whose effect could not be shown. */
  able: { row: OperationRow; effect: Effect | null }[]
  /** Those that are left out, each with the server's reason. */
  out: { row: OperationRow; problem: Problem }[]
  /** How many dry runs have no answer yet. */
  asking: number
  /** The sign-in is too old for the command. */
  stale: boolean
}

/** The effect of the command on each of the operations, as far as the dry runs have been answered. */
export const partOf = (
  rows: readonly OperationRow[],
  tried: ReadonlyMap<string, Tried<Effect>>,
  command: OperationCommand,
): Parted => {
  const parted: Parted = { able: [], out: [], asking: 0, stale: false }
  for (const row of rows) {
    const { effect = null, problem = null } = tried.get(row.operation_id) ?? {}
    if (problem?.code === 'reauth_required') parted.stale = true
    else if (effect !== null || (problem !== null && command === 'pause' && mayRepeat(problem)))
      parted.able.push({ row, effect })
    else if (problem !== null) parted.out.push({ row, problem })
    else parted.asking += 1
  }
  return parted
}
