import { useRef, useState } from 'react'
import { useConnection } from '../api/hooks.ts'
import type { OperationRow } from '../api/types.ts'
import { isLeft } from '../command/each.ts'
import { ConfirmField, PasswordAgain, ReasonField } from '../command/fields.tsx'
import { useDryRuns, useEach } from '../command/together.tsx'
import { useTyped } from '../session/typed.ts'
import { DialogFrame } from '../ui/overlays.tsx'
import { t } from '../words/index.ts'
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
  const [reason, setReason] = useTyped(`together ${command}`, '')
  const [typed, setTyped] = useState('')
  const [checked, setChecked] = useState(false)
  const { able, out, asking, locked, again, freeze } = useForeseen(rows, command, mode)
  const field = useRef<HTMLTextAreaElement>(null)
  const offline = useConnection().mode === 'offline'
  const { results, sending, stale, send, confirmed, begun } = useEach(NOUNS)
  const left = able.filter(({ row }) => isLeft(results.get(row.operation_id)))
  const needsPassword = stale || locked
  const disabled = sending || offline || needsPassword || asking > 0
  const reasonMissing = reason.trim() === ''
  const countMissing = typed.trim() !== String(able.length)
  const press = () => {
    if (disabled) return
    setChecked(true)
    if (reasonMissing) return field.current?.focus()
    if (left.length === 0 || countMissing) return
    freeze()
    const said = reason.trim()
    void send(left.map(({ row }) => [row.operation_id, commandOn(row.operation_id, command, mode, said)]))
  }
  /** Closed while it sends, it would hide the answers. */
  const leave = () => {
    if (!sending) close()
  }
  const button = sending ? tCommand.sending : begun ? words.rest(left.length) : words.buttons[command](able.length)
  return (
    <DialogFrame
      title={words.titles[command](rows.length)}
      close={leave}
      wide
      footer={
        <>
          <button type="button" className="button" aria-disabled={sending} onClick={leave}>
            {t.close}
          </button>
          {able.length === 0 || (begun && !sending && left.length === 0) ? null : (
            <button
              type="button"
              className={`button main ${command === 'cancel' ? 'danger' : ''}`}
              aria-disabled={disabled}
              onClick={press}
            >
              {button}
            </button>
          )}
        </>
      }
    >
      {command === 'cancel' ? <ModeField modes={MODES} isOff={() => begun} value={mode} change={setMode} /> : null}
      {able.length > 0 ? <Able {...{ able, command, mode, results }} /> : null}
      {able.length === 0 && asking === 0 && !needsPassword ? <p>{words.none}</p> : null}
      {out.length > 0 ? <LeftOut out={out} again={begun ? undefined : again} /> : null}
      {able.length + asking === 0 ? null : (
        <Typing
          {...{ field, reason, setReason, typed, setTyped, begun }}
          count={asking > 0 ? undefined : able.length}
          reasonMissing={checked && reasonMissing}
          countMissing={checked && countMissing}
        />
      )}
      {needsPassword ? <PasswordAgain confirmed={stale ? confirmed : again} /> : null}
      {offline ? <p className="field-error">{tCommand.offline}</p> : null}
      <p role="status">
        {asking > 0 ? tCommand.asking : begun ? words.progress(able.length - left.length, able.length) : ''}
      </p>
    </DialogFrame>
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

type TypingProps = {
  field: React.Ref<HTMLTextAreaElement>
  reason: string
  setReason: (reason: string) => void
  typed: string
  setTyped: (typed: string) => void
  begun: boolean
  /** Unknown until every dry run is answered. */
  count: number | undefined
  reasonMissing: boolean
  countMissing: boolean
}

/** The reason, which each command takes, and the count of the operations. */
const Typing = ({ field, reason, setReason, typed, setTyped, begun, count, ...missing }: TypingProps) => (
  <>
    <ReasonField
      label={tCommand.reason}
      needed
      field={field}
      value={reason}
      change={setReason}
      readOnly={begun}
      error={missing.reasonMissing ? tCommand.reason_needed : null}
    />
    {count === undefined ? null : (
      <ConfirmField
        word={String(count)}
        value={typed}
        change={setTyped}
        readOnly={begun}
        missing={missing.countMissing}
      />
    )}
  </>
)
