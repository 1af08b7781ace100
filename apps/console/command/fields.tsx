import { useQuery } from '@tanstack/react-query'
import { useEffect, useId, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import type { AllowedAction, Plan } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { CodeField, digitsOf, Field, isCode, TextField } from '../forms/field.tsx'
import { PasswordField } from '../forms/password.tsx'
import { totpQuery } from '../queries/me.ts'
import { type Provider, proveAt, sessionProvider } from '../session/providers.ts'
import { confirmBy, confirmPasskey } from '../session/sign-in.ts'
import { ProblemText } from '../ui/failure.tsx'
import { Conflicts } from '../values/conflicts.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { tDecide } from '../words/decide.ts'
import { tLogin, tSession } from '../words/frame/login.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tCommand } from '../words/operations/command.ts'

type Typed = {
  value: string
  change: (value: string) => void
  readOnly: boolean
  /** The fault of the value; null if it is right or before the first press. */
  error: string | null
}

type ReasonFieldProps = Typed & { label: string; needed: boolean; field: React.Ref<HTMLTextAreaElement> }

/** The text of a command. One that the command needs says so before the first press. */
export const ReasonField = ({ label, needed, field, ...typed }: ReasonFieldProps) => {
  const id = useId()
  const note = needed && typed.error === null ? tCommand.required : undefined
  return (
    <Field id={id} label={label} note={note} error={typed.error}>
      <textarea
        ref={field}
        id={id}
        className="input"
        maxLength={2000}
        value={typed.value}
        readOnly={typed.readOnly}
        onChange={(event) => typed.change(event.target.value)}
        aria-required={needed}
        aria-invalid={typed.error !== null}
        aria-describedby={note ? `${id}-note ${id}-error` : `${id}-error`}
      />
    </Field>
  )
}

type ConfirmFieldProps = Omit<Typed, 'error'> & { word: string; missing: boolean }

/** A word that must be typed before an irreversible command. */
export const ConfirmField = ({ word, missing, ...typed }: ConfirmFieldProps) => (
  <TextField
    {...typed}
    className="input mono"
    label={tCommand.confirm_word(word)}
    error={missing ? tCommand.confirm_needed(word) : null}
  />
)

export const Refusal = ({ title, problem }: { title: string; problem: Problem }) => (
  <div className="flex gap-2">
    <ShapeIcon shape="octagon" tone="bad" beside />
    <div className="min-w-0">
      <p className="font-medium">{title}</p>
      {problem.category === 'invalid_state_transition' ? (
        <ProblemText problem={{ ...problem, hint: tCommand.possible(possibleNow(problem)) }} />
      ) : problem.code === 'resource_lease_held' ? (
        <>
          <ProblemText problem={problem} detail={tCommand.held} />
          <Conflicts conflicts={holdersIn(problem)} />
        </>
      ) : (
        <ProblemText problem={problem} />
      )}
    </div>
  </div>
)

type Blocker = { id: string; operation_id?: string; message: string }

/** Who holds what the command needs: its operation, unless this person may not see it. */
const holdersIn = ({ blockers = [] }: Problem): Plan['conflicts'] =>
  (blockers as Blocker[]).map(({ id: resource_id, operation_id: id = '', message }) => ({
    ...{ kind: 'lease', id, resource_id, title: null, message },
  }))

/** The actions that are possible instead, named as on their buttons. */
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

type PasswordAgainProps = {
  confirmed: () => void
  /** Only a second factor helps. */
  factor?: boolean
}

/** Step-up: the last sign-in is too old for this command, or proves too little. Afterwards the dialog is unchanged for another press. */
export const PasswordAgain = ({ confirmed, factor = false }: PasswordAgainProps) => {
  const id = useId()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState<string | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [provider, setProvider] = useState<Provider>()
  const totp = useQuery(totpQuery())
  useEffect(() => void sessionProvider().then(setProvider), [])
  const passwordless = factor || provider !== undefined
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (code !== null && !isCode(code)) return setError(tLogin.code_missing)
    const status = await confirmBy(code === null ? { password } : { totp: digitsOf(code) })
    if (status === 200) return confirmed()
    const wrong = status === 422 || status === 403
    const unproved = status === 403 ? tLogin.closed : tSession.wrong
    const refused = code === null ? unproved : tLogin.code_refused
    setError(wrong ? refused : status === null ? tLogin.no_answer : tLogin.failed)
  }
  const byPasskey = async () => ((await confirmPasskey()) ? confirmed() : setError(tLogin.passkey_refused))
  const atProvider = async (there: Provider) => {
    const status = await proveAt(there, 'reauth')
    if (status !== 200) setError(status === null ? tLogin.no_answer : tLogin.failed)
  }
  return (
    <form
      noValidate
      onSubmit={(event) => void submit(event)}
      className="flex flex-col items-start gap-2 rounded-card bg-sunken p-4"
    >
      <p className="font-medium">{tSession.confirm_title}</p>
      <p className="text-muted">
        {factor ? tSession.confirm_factor : provider ? tSession.confirm_away(provider.title) : tSession.confirm_text}
      </p>
      <div className="self-stretch">
        {code !== null ? (
          <CodeField id={id} label={tLogin.code} value={code} change={setCode} error={error} />
        ) : passwordless ? (
          <p className="field-error empty:hidden" role="alert">
            {error}
          </p>
        ) : (
          <PasswordField
            id={id}
            label={tLogin.password}
            autoComplete="current-password"
            value={password}
            change={setPassword}
            errors={error === null ? [] : [error]}
          />
        )}
      </div>
      <div className="flex flex-wrap gap-2">
        {code === null && passwordless ? null : <Button type="submit" word={tSession.confirm} />}
        {provider && !factor ? (
          <Button onClick={() => void atProvider(provider)} word={tSession.confirm_through(provider.title)} />
        ) : null}
        <Button look="quiet" onClick={() => void byPasskey()} word={tLogin.passkey} />
        {code === null && totp.data?.active ? (
          <Button look="quiet" onClick={() => setCode('')} word={tSession.use_code} />
        ) : null}
      </div>
    </form>
  )
}
