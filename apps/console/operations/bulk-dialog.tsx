import { useState } from 'react'
import type { OperationRow } from '../api/types.ts'
import { BulkFrame } from '../command/bulk.tsx'
import { isLeft } from '../command/each.ts'
import { useDryRuns, useEach } from '../command/together.tsx'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'
import { commandOn, type Parted, partOf } from './bulk.ts'
import { Able, LeftOut } from './bulk-rows.tsx'
import { type Effect, type Mode, ModeField, type OperationCommand } from './effects.tsx'

const words = tOperation.operations.bulk
const NOUNS = ['operations', 'operation', 'graph', 'nodes', 'timeline', 'inbox', 'me']
/** Force abandons running nodes: it is for one cancellation that does not end, on the page of its operation. */
const MODES: Mode[] = ['graceful', 'compensate']

type Props = { rows: OperationRow[]; command: OperationCommand; close: () => void }

/**
 * Pauses, resumes or cancels the selected operations. It first shows the effect on each, and why others are left out.
 * Then each gets its own command and shows its own answer.
 */
export const BulkDialog = ({ rows, command, close }: Props) => {
  const [mode, setMode] = useState<Mode>('graceful')
  const { able, out, asking, locked, again, freeze } = useForeseen(rows, command, mode)
  const { results, sending, stale, send, confirmed, begun } = useEach(NOUNS)
  const left = able.filter(({ row }) => isLeft(results.get(row.operation_id)))
  const sendAll = (reason: string) => {
    freeze()
    void send(left.map(({ row }) => [row.operation_id, commandOn(row.operation_id, command, mode, reason)]))
  }
  return (
    <BulkFrame
      title={words.titles[command](rows.length)}
      danger={command === 'cancel'}
      count={able.length}
      left={left.length}
      confirmed={stale ? confirmed : locked ? again : undefined}
      reason={{ place: `together ${command}`, label: tCommand.reason, missing: tCommand.reason_needed }}
      button={words.buttons[command](able.length)}
      send={sendAll}
      {...{ close, asking, sending, begun, words }}
    >
      {command === 'cancel' ? <ModeField modes={MODES} isOff={() => begun} value={mode} change={setMode} /> : null}
      {able.length > 0 ? <Able {...{ able, command, mode, results }} /> : null}
      {able.length === 0 && asking === 0 && !stale && !locked ? <p>{words.none}</p> : null}
      {out.length > 0 ? <LeftOut out={out} again={begun ? undefined : again} /> : null}
    </BulkFrame>
  )
}

/** The effect on each operation. `freeze` keeps it as it was shown when the first command was sent. */
const useForeseen = (rows: OperationRow[], command: OperationCommand, mode: Mode) => {
  const [flipped, setFlipped] = useState(false)
  const [frozen, setFrozen] = useState<Parted>()
  const dry = rows.map(({ operation_id }) => [operation_id, commandOn(operation_id, command, mode, '-')] as const)
  const foreseen = partOf(rows, useDryRuns<Effect>(dry, flipped), command)
  const { able, out, asking, stale: locked } = frozen ?? foreseen
  const again = () => setFlipped((before) => !before)
  return { able, out, asking, locked, again, freeze: () => setFrozen(frozen ?? foreseen) }
}
