import { useEffect, useId, useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { type Command, dryRun, type Outcome, sendCommand } from '../api/commands.ts'
import { useConnection } from '../api/hooks.ts'
import type { AllowedAction } from '../api/types.ts'
import { PasswordField } from '../forms/password.tsx'
import { confirmPassword } from '../session/token.ts'
import { ProblemText } from '../ui/failure.tsx'
import { DialogFrame } from '../ui/overlays.tsx'
import { ShapeIcon } from '../ui/status.tsx'
import { TimeText } from '../ui/time.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

type Text = { name: 'reason' | 'comment'; label: string; needed: boolean; missing: string }
export type CommandDialogProps<Effect, Reply> = {
  title: string
  button: string
  danger?: boolean
  /** Path and body without the typed text. */
  command: Command
  /** What the dry run asks instead, where the command is not complete yet; null: nothing can be asked yet. */
  preview?: Command | null
  text: Text
  /** What will happen, from the server's own dry run. */
  consequences?: (effect: Effect) => React.ReactNode
  children?: React.ReactNode
  /** Something beside the typed text is missing or moved: the button waits. */
  blocked?: boolean
  /** A word that must be typed, where a slip would be costly. */
  confirm?: string
  refused?: (problem: Problem) => void
  done: (reply: Reply) => void
  close: () => void
}

/** The one way in which every command is opened, confirmed, sent and answered (console.md section 6). */
export const CommandDialog = <Effect, Reply>(props: CommandDialogProps<Effect, Reply>) => {
  const {
    title,
    button,
    danger = false,
    command,
    text,
    consequences,
    children,
    blocked = false,
    confirm,
    done,
    close,
  } = props
  const id = useId()
  const [words, setWords] = useState('')
  const [typed, setTyped] = useState('')
  const [checked, setChecked] = useState(false)
  const [phase, setPhase] = useState<'open' | 'sending' | 'accepted' | 'unknown'>('open')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [accepted, setAccepted] = useState('')
  const [asked, setAsked] = useState(false)
  // The key belongs to one body: it is made for a body and kept while that body is asked for again.
  const sent = useRef<{ key: string; command: Command } | null>(null)
  /** The session ended under the last try, so nobody has judged it: the same body goes on with the same key. */
  const unanswered = useRef(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const offline = useConnection().mode === 'offline'
  const previewed = props.preview === undefined ? command : props.preview
  const preview = useDryRun<Effect>(
    previewed && { path: previewed.path, body: { ...previewed.body, ...(text.needed ? { [text.name]: '-' } : {}) } },
    asked,
  )

  const needsPassword = (problem ?? preview.problem)?.code === 'reauth_required'
  const wordsMissing = text.needed && words.trim() === ''
  const typedMissing = confirm !== undefined && typed.trim() !== confirm

  const send = async () => {
    if (phase === 'sending' || offline) return
    setChecked(true)
    if (phase !== 'unknown' && wordsMissing) return field.current?.focus()
    if (typedMissing || blocked) return
    if (phase !== 'unknown') {
      const body = { ...command.body, ...(words.trim() === '' ? {} : { [text.name]: words.trim() }) }
      const next = { path: command.path, body }
      const same = JSON.stringify(sent.current?.command) === JSON.stringify(next)
      if (!(same && unanswered.current)) sent.current = { key: crypto.randomUUID(), command: next }
    }
    if (sent.current === null) return
    setPhase('sending')
    setProblem(null)
    answered(await sendCommand<Reply>(sent.current.command, sent.current.key))
  }
  const answered = (outcome: Outcome<Reply>) => {
    if (outcome.kind === 'applied') {
      done(outcome.reply)
      return close()
    }
    if (outcome.kind === 'accepted') {
      done(outcome.reply)
      setAccepted(outcome.at)
      return setPhase('accepted')
    }
    unanswered.current = outcome.kind === 'refused' && outcome.problem.status === 401
    setProblem(unanswered.current ? null : outcome.problem)
    setPhase(outcome.kind === 'unknown' ? 'unknown' : 'open')
    if (unanswered.current) return
    if (outcome.kind === 'refused') props.refused?.(outcome.problem)
  }

  if (phase === 'accepted') {
    return (
      <DialogFrame title={title} close={close} footer={<CloseButton close={close} />}>
        <p className="flex items-start gap-2" role="status">
          <span className="mt-0.5">
            <ShapeIcon shape="clock" tone="idle" />
          </span>
          <span>
            {tDecide.command.accepted_start} <TimeText at={accepted} form="clock" />. {tDecide.command.accepted_end}
          </span>
        </p>
      </DialogFrame>
    )
  }
  const frozen = phase === 'sending' || phase === 'unknown'
  return (
    <DialogFrame
      title={title}
      close={close}
      wide={children != null}
      footer={
        <>
          <CloseButton close={close} />
          <button
            type="button"
            className={`button main ${danger ? 'danger' : ''}`}
            onClick={() => void send()}
            aria-disabled={phase === 'sending' || offline || blocked || needsPassword}
          >
            {phase === 'sending' ? tDecide.command.sending : phase === 'unknown' ? tDecide.command.ask_again : button}
          </button>
        </>
      }
    >
      {consequences && previewed ? (
        <div aria-live="polite">
          {preview.effect !== null ? (
            consequences(preview.effect)
          ) : preview.problem !== null && !needsPassword ? (
            <Refusal
              title={preview.problem.status === 0 ? tDecide.command.no_dry_run : tDecide.command.not_possible}
              problem={preview.problem}
            />
          ) : preview.problem === null ? (
            <p className="text-muted">{tDecide.command.asking}</p>
          ) : null}
        </div>
      ) : null}
      {children}
      <div>
        <label className="label" htmlFor={`${id}-text`}>
          {text.label}
        </label>
        <textarea
          ref={field}
          id={`${id}-text`}
          className="input"
          maxLength={2000}
          value={words}
          readOnly={frozen}
          onChange={(event) => setWords(event.target.value)}
          aria-required={text.needed}
          aria-invalid={checked && wordsMissing}
          aria-describedby={`${id}-error`}
        />
        <p id={`${id}-error`} className="field-error">
          {checked && wordsMissing ? text.missing : null}
        </p>
      </div>
      {confirm === undefined ? null : (
        <div>
          <label className="label" htmlFor={`${id}-word`}>
            {tDecide.command.confirm_word(confirm)}
          </label>
          <input
            id={`${id}-word`}
            className="input mono"
            value={typed}
            readOnly={frozen}
            onChange={(event) => setTyped(event.target.value)}
            aria-invalid={checked && typedMissing}
            aria-describedby={`${id}-word-error`}
          />
          <p id={`${id}-word-error`} className="field-error">
            {checked && typedMissing ? tDecide.command.confirm_needed(confirm) : null}
          </p>
        </div>
      )}
      {needsPassword ? (
        <PasswordAgain
          confirmed={() => {
            setProblem(null)
            setAsked((before) => !before)
          }}
        />
      ) : problem ? (
        <div role="alert">
          <Refusal
            title={phase === 'unknown' ? tDecide.command.unknown : tDecide.command.not_possible}
            problem={problem}
          />
        </div>
      ) : null}
      {offline ? <p className="field-error">{tDecide.command.offline}</p> : null}
    </DialogFrame>
  )
}

const CloseButton = ({ close }: { close: () => void }) => (
  <button type="button" className="button" onClick={close}>
    {t.close}
  </button>
)

const Refusal = ({ title, problem }: { title: string; problem: Problem }) => (
  <div className="flex gap-2">
    <span className="mt-0.5">
      <ShapeIcon shape="octagon" tone="bad" />
    </span>
    <div className="min-w-0">
      <p className="font-medium">{title}</p>
      {problem.category === 'invalid_state_transition' ? (
        <ProblemText problem={{ ...problem, hint: tDecide.command.possible(possibleNow(problem)) }} />
      ) : (
        <ProblemText problem={problem} />
      )}
    </div>
  </div>
)

/** What the refusal says may be done instead, in the words of the buttons. */
const possibleNow = (problem: Problem): string[] => {
  const actions = (problem.allowed_actions ?? []) as AllowedAction[]
  const words: Record<string, string> = {
    ...tOperation.operation.action,
    approve: tDecide.gate.approve,
    reject: tDecide.gate.reject,
  }
  const named = actions.flatMap(({ action, allowed }) => (allowed ? (words[action] ?? []) : []))
  return named.length > 0 ? named : [t.none]
}

/** Step-up: the last sign-in is too old for this command. Afterwards the dialog is as it was; the person presses again. */
const PasswordAgain = ({ confirmed }: { confirmed: () => void }) => {
  const id = useId()
  const [password, setPassword] = useState('')
  const [error, setError] = useState<string | null>(null)
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const status = await confirmPassword(password)
    if (status === 200) confirmed()
    else
      setError(
        status === 422 || status === 401 ? t.session.wrong : status === null ? t.login.no_answer : t.login.failed,
      )
  }
  return (
    <form
      noValidate
      onSubmit={(event) => void submit(event)}
      className="flex flex-col items-start gap-2 rounded-card bg-sunken p-4"
    >
      <p className="font-medium">{t.session.confirm_title}</p>
      <p className="text-muted">{t.session.confirm_text}</p>
      <div className="self-stretch">
        <PasswordField
          id={id}
          label={t.login.password}
          autoComplete="current-password"
          value={password}
          change={setPassword}
          errors={error === null ? [] : [error]}
        />
      </div>
      <button type="submit" className="button">
        {t.session.confirm}
      </button>
    </form>
  )
}

/** The server's own word on what a command would do, for this body; asked again when `again` flips. */
function useDryRun<Effect>(
  command: Command | null,
  again: boolean,
): { effect: Effect | null; problem: Problem | null } {
  const [state, setState] = useState<{ effect: Effect | null; problem: Problem | null }>({
    effect: null,
    problem: null,
  })
  const asked = JSON.stringify([command, again])
  useEffect(() => {
    let left = false
    const [body] = JSON.parse(asked) as [Command | null, boolean]
    if (body === null) return
    void dryRun<Effect>(body).then((reply) => {
      if (left) return
      setState('effect' in reply ? { effect: reply.effect, problem: null } : { effect: null, problem: reply.problem })
    })
    return () => {
      left = true
    }
  }, [asked])
  return state
}
