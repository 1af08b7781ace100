import { useRef, useState } from 'react'
import { useConnection } from '../api/hooks.ts'
import { Button } from '../forms/button.tsx'
import { useTyped } from '../session/typed.ts'
import { DialogFrame } from '../ui/overlays.tsx'
import { t } from '../words/index.ts'
import { tCommand } from '../words/operations/command.ts'
import { ConfirmField, PasswordAgain, ReasonField } from './fields.tsx'

type BulkFrameProps = {
  title: string
  close: () => void
  danger: boolean
  /** How many items get a command. */
  count: number
  /** How many may still join them: their dry runs are not answered yet. */
  asking?: number
  /** How many commands must still be sent. */
  left: number
  sending: boolean
  begun: boolean
  /** Continues after the password was confirmed; undefined while none is needed. */
  confirmed: (() => void) | undefined
  /** The text that all commands share; `missing` if one is needed. `place`: where it is kept over a new sign-in. */
  reason: { place: string; label: string; missing: string | undefined }
  words: { rest: (n: number) => string; progress: (done: number, all: number) => string }
  button: string
  send: (reason: string) => void
  children: React.ReactNode
}

/** The dialog of commands that are sent together: one reason, the count as confirmation, one button, the progress. */
export const BulkFrame = (props: BulkFrameProps) => {
  const { title, close, count, asking = 0, left, sending, begun, confirmed, reason, words, children } = props
  const [text, setText] = useTyped(reason.place, '')
  const [typed, setTyped] = useState('')
  const [checked, setChecked] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const offline = useConnection().mode === 'offline'
  const disabled = sending || offline || confirmed !== undefined || asking > 0
  const textMissing = reason.missing !== undefined && text.trim() === ''
  const countMissing = typed.trim() !== String(count)
  const press = () => {
    if (disabled) return
    setChecked(true)
    if (textMissing) return field.current?.focus()
    if (left > 0 && !countMissing) props.send(text.trim())
  }
  /** Closed while it sends, it would hide the answers. */
  const leave = () => {
    if (!sending) close()
  }
  const over = begun && !sending && left === 0
  return (
    <DialogFrame
      title={title}
      close={leave}
      wide
      footer={
        <>
          <Button aria-disabled={sending} onClick={leave} word={t.close} />
          {over || count === 0 ? null : (
            <Button look={`main ${props.danger ? 'danger' : ''}`} aria-disabled={disabled} onClick={press}>
              {sending ? tCommand.sending : begun ? words.rest(left) : props.button}
            </Button>
          )}
        </>
      }
    >
      {children}
      {count + asking === 0 ? null : (
        <ReasonField
          label={reason.label}
          needed={reason.missing !== undefined}
          field={field}
          value={text}
          change={setText}
          readOnly={begun}
          error={checked && textMissing ? (reason.missing ?? null) : null}
        />
      )}
      {count === 0 || asking > 0 ? null : (
        <ConfirmField
          word={String(count)}
          value={typed}
          change={setTyped}
          readOnly={begun}
          missing={checked && countMissing}
        />
      )}
      {confirmed ? <PasswordAgain confirmed={confirmed} /> : null}
      {offline ? <p className="field-error">{tCommand.offline}</p> : null}
      <p role="status">{asking > 0 ? tCommand.asking : begun ? words.progress(count - left, count) : ''}</p>
    </DialogFrame>
  )
}
