import { Radios } from '../forms/select.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

export type OperationCommand = 'pause' | 'resume' | 'cancel'
export type Mode = 'graceful' | 'compensate' | 'force'

/** The server's dry run of a command on a whole operation. */
export type Effect = {
  running?: unknown[]
  not_started?: number
  drifted?: unknown[]
  next_nodes?: unknown[]
  compensations?: unknown[]
}

const words = tOperation.operation
const NAMED = 5

type Props = { command: OperationCommand; mode?: Mode; effect: Effect }

/** The effect of a command on one operation, in numbers and names. */
export const EffectText = ({ command, mode = 'graceful', effect }: Props) => {
  const { running = [], not_started = 0, drifted = [], next_nodes = [], compensations = [] } = effect
  if (command === 'resume')
    return (
      <>
        <p>{words.resume.effect(names(next_nodes))}</p>
        {drifted.length > 0 ? <p>{words.resume.drifted(names(drifted))}</p> : null}
      </>
    )
  return (
    <>
      <p>{words[command].effect(running.length, not_started)}</p>
      {mode === 'compensate' ? <p>{words.cancel.compensations(compensations.length)}</p> : null}
    </>
  )
}

type ModeFieldProps = { modes: Mode[]; isOff: (mode: Mode) => boolean; value: Mode; change: (mode: Mode) => void }

/** How an operation is canceled. */
export const ModeField = ({ modes, isOff, value, change }: ModeFieldProps) => (
  <Radios
    label={words.cancel.mode}
    choices={modes.map((mode) => [mode, words.cancel[mode]])}
    {...{ isOff, value, change }}
  />
)

/** Names of the items of a dry run; a long list is truncated, with the number of the rest. */
function names(items: unknown[]): string[] {
  const all = items.map((item) =>
    typeof item === 'string'
      ? item
      : String(
          (item as { name?: string; node_id?: string; resource_id?: string }).name ??
            (item as { node_id?: string }).node_id ??
            (item as { resource_id?: string }).resource_id ??
            '',
        ),
  )
  return all.length > NAMED ? [...all.slice(0, NAMED), t.others(all.length - NAMED)] : all
}
