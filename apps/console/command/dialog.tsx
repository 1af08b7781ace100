import { useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { Command } from '../api/commands.ts'
import { useConnection } from '../api/hooks.ts'
import type { Recorded } from '../api/recorded.ts'
import { Button } from '../forms/button.tsx'
import { useTyped } from '../session/typed.ts'
import { LateOutcome } from '../ui/late.tsx'
import { DialogFrame } from '../ui/overlays.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { t } from '../words/index.ts'
import { tCommand } from '../words/operations/command.ts'
import { mayRepeat } from './each.ts'
import { ConfirmField, PasswordAgain, ReasonField, Refusal } from './fields.tsx'
import { type Complete, useCommand, useDryRun } from './send.ts'

type Text = { name: 'reason' | 'comment'; label: string; needed: boolean; missing: string }
export type CommandDialogProps<Effect, Reply> = {
  title: string
  button: string
  danger?: boolean
  /** Path and body without the typed text. */
  command: Command
  /** A dry run for a command that is not complete yet; null if it cannot be previewed yet. */
  preview?: Command | null
  /** Completes the command with a signature as it is sent; a problem is shown instead of an answer. */
  complete?: Complete
  /** The text that the command takes; a command without one has no field for it. */
  text?: Text
  /** Shown when the server has accepted the command but not yet carried it out. */
  accepted?: string | undefined
  /** The effect, from the server's dry run. */
  consequences?: (effect: Effect) => React.ReactNode
  /** It may be sent before its effect is shown, or without. */
  unseen?: boolean
  children?: React.ReactNode
  /** A field other than the text is missing or out of date, so the button is disabled. */
  blocked?: boolean
  /** Why it must not be sent now; the button is disabled. */
  why?: string | undefined
  /** A word that must be typed before an irreversible command. */
  confirm?: string
  refused?: (problem: Problem) => void
  done: (reply: Reply) => void
  close: () => void
}

/** Opens, confirms, sends and answers every command (console.md 6). */
export const CommandDialog = <Effect, Reply>(props: CommandDialogProps<Effect, Reply>) => {
  const { title, button, danger = false, command, text, confirm, why, close } = props
  const [words, setWords] = useTyped(command.path, '')
  const [typed, setTyped] = useState('')
  const [asked, setAsked] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const offline = useConnection().mode === 'offline'
  const { phase, problem, accepted_at, recorded, checked, send, tell } = useCommand<Reply>(props)
  const previewed = props.preview === undefined ? command : props.preview
  const preview = useDryRun<Effect>(
    previewed && { path: previewed.path, body: { ...previewed.body, ...(text?.needed ? { [text.name]: '-' } : {}) } },
    asked,
  )
  const askAgain = () => setAsked((before) => !before)
  if (phase === 'accepted') return <Accepted {...{ title, close, recorded }} at={accepted_at} words={props.accepted} />
  const unseen = props.consequences !== undefined && previewed !== null && preview.effect === null && !props.unseen
  // What is asked again was sent before.
  const blocked = phase !== 'unknown' && (props.blocked === true || why !== undefined || unseen)
  const needsPassword = (problem ?? preview.problem)?.code === 'reauth_required'
  const wordsMissing = text?.needed === true && words.trim() === ''
  const typedMissing = confirm !== undefined && typed.trim() !== confirm
  const sending = phase === 'sending'
  const frozen = sending || phase === 'unknown'
  /** Closed while it sends, it would hide the answer. */
  const leave = () => {
    if (!sending) close()
  }
  const press = () => {
    if (sending || offline) return
    tell({ type: 'checked' })
    if (phase !== 'unknown' && wordsMissing) return field.current?.focus()
    if (typedMissing || blocked) return
    const said = text === undefined || words.trim() === '' ? {} : { [text.name]: words.trim() }
    const whole = { ...command, body: { ...command.body, ...said } }
    void send(whole, props.complete)
  }
  return (
    <DialogFrame
      title={title}
      close={leave}
      wide={props.children != null}
      footer={
        <>
          <Button aria-disabled={sending} onClick={leave} word={t.close} />
          <Button
            look={`main ${danger ? 'danger' : ''}`}
            onClick={press}
            aria-disabled={sending || offline || blocked || needsPassword}
            word={sending ? tCommand.sending : phase === 'unknown' ? tCommand.ask_again : button}
          />
        </>
      }
    >
      {props.consequences && previewed ? (
        <Consequences {...preview} hidden={needsPassword} draw={props.consequences} again={askAgain} />
      ) : null}
      {props.children}
      {text === undefined ? null : (
        <ReasonField
          label={text.label}
          needed={text.needed}
          field={field}
          value={words}
          change={setWords}
          readOnly={frozen}
          error={checked && wordsMissing ? text.missing : null}
        />
      )}
      {confirm === undefined ? null : (
        <ConfirmField
          word={confirm}
          value={typed}
          change={setTyped}
          readOnly={frozen}
          missing={checked && typedMissing}
        />
      )}
      <Answer
        problem={problem}
        unknown={phase === 'unknown'}
        needsPassword={needsPassword}
        confirmed={() => {
          tell({ type: 'password_confirmed' })
          askAgain()
        }}
      />
      <Stopped why={why} offline={offline} />
    </DialogFrame>
  )
}

/** Why the button is disabled, besides missing fields. */
const Stopped = ({ why, offline }: { why: string | undefined; offline: boolean }) => (
  <>
    <p role="status" className="field-error empty:hidden">
      {why}
    </p>
    {offline ? <p className="field-error">{tCommand.offline}</p> : null}
  </>
)

type AnswerProps = { problem: Problem | null; unknown: boolean; needsPassword: boolean; confirmed: () => void }

/** Why the command was not accepted, or the password that it needs again. */
const Answer = ({ problem, unknown, needsPassword, confirmed }: AnswerProps) =>
  needsPassword ? (
    <PasswordAgain confirmed={confirmed} />
  ) : problem ? (
    <div role="alert">
      <Refusal title={unknown ? tCommand.unknown : tCommand.not_possible} problem={problem} />
    </div>
  ) : null

type AcceptedProps = {
  title: string
  at: string
  words: string | undefined
  recorded: Recorded | undefined
  close: () => void
}

/** The command is recorded; its outcome follows here and on the page. */
const Accepted = ({ title, at, words, recorded, close }: AcceptedProps) => (
  <DialogFrame title={title} close={close} footer={<Button onClick={close} word={t.close} />}>
    <p className="flex items-start gap-2" role="status">
      <ShapeIcon shape="clock" tone="idle" beside />
      <span>
        {tCommand.accepted_start} <TimeText at={at} form="clock" />. {words ?? tCommand.accepted_end}
      </span>
    </p>
    {recorded ? (
      <div role="status">
        <LateOutcome {...recorded} />
      </div>
    ) : null}
  </DialogFrame>
)

/** The answer of the dry run, as it arrives. */
const Consequences = <Effect,>({
  effect,
  problem,
  hidden,
  draw,
  again,
}: {
  effect: Effect | null
  problem: Problem | null
  hidden: boolean
  draw: (effect: Effect) => React.ReactNode
  again: () => void
}) => (
  <div aria-live="polite">
    {effect !== null ? (
      draw(effect)
    ) : problem === null ? (
      <p className="text-muted">{tCommand.asking}</p>
    ) : hidden ? null : (
      <>
        <Refusal title={problem.status === 0 ? tCommand.no_dry_run : tCommand.not_possible} problem={problem} />
        {mayRepeat(problem) ? <Button onClick={again} word={t.retry} /> : null}
      </>
    )}
  </div>
)
