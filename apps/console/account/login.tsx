import { useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { nextPath } from '../../shared/contracts/client/next-path.ts'
import { usePhase } from '../api/hooks.ts'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { PasswordField } from '../forms/password.tsx'
import { SecondStepForm } from '../forms/second-step.tsx'
import { signInError } from '../forms/sign-in-error.ts'
import { Welcome } from '../frame/welcome.tsx'
import { display } from '../kit/prefs.ts'
import type { SecondStep } from '../session/answer.ts'
import { awayAtProvider, type Provider, signInAddress, waysIn } from '../session/providers.ts'
import { type SignIn, signIn, signInByPasskey } from '../session/sign-in.ts'
import { sessionPhase, startSession } from '../session/token.ts'
import { Heading } from '../ui/page.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { tLogin } from '../words/frame/login.ts'

type Errors = { username?: string; password?: string; form?: string }

/** The fields of the sign-in and its outcome. The resulting phase decides the next page. */
const useSignIn = () => {
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState(false)
  const [step, setStep] = useState<SecondStep>()
  const { error } = useSearch({ from: '/login' })
  const [errors, setErrors] = useState<Errors>(error === undefined ? {} : { form: refusalOf(error) })
  const nameField = useRef<HTMLInputElement>(null)
  const passwordField = useRef<HTMLInputElement>(null)

  useEffect(() => {
    // A person who is already signed in and opens this address continues to the console.
    if (sessionPhase().name === 'starting') void startSession()
    nameField.current?.focus()
  }, [])

  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (busy) return
    const missing = {
      ...(username.trim() === '' ? { username: tLogin.missing_username } : {}),
      ...(password === '' ? { password: tLogin.missing_password } : {}),
    }
    setErrors(missing)
    if (missing.username) return nameField.current?.focus()
    if (missing.password) return passwordField.current?.focus()
    if (await enter(signIn(username.trim(), password))) return
    passwordField.current?.focus()
  }
  const enter = async (attempt: Promise<SignIn>): Promise<boolean> => {
    setBusy(true)
    const result = await attempt
    setBusy(false)
    if (result.ok) return true
    setStep(result.step)
    if (!result.step) setErrors({ form: signInError(result, display().zone) })
    return result.step !== undefined
  }
  /** Returns from the second step: asks for the password again, unless the person is signed in. */
  const over = (end: SignIn | null) => {
    if (end?.ok) return
    setStep(undefined)
    setPassword('')
    setErrors(end ? { form: signInError(end, display().zone) } : {})
  }
  const byPasskey = () => {
    if (!busy) void enter(signInByPasskey())
  }
  const fields = { username, setUsername, nameField, password, setPassword, passwordField }
  return { ...fields, busy, errors, submit, byPasskey, step, over }
}

/** The address may name any code. */
const refusalOf = (code: string): string =>
  (Object.hasOwn(tLogin.refused, code) && tLogin.refused[code]?.join(' ')) || tLogin.refused_otherwise(code)

/** The ways in besides the password, which is only for emergencies where the installation says so. */
const useWaysIn = () => {
  const [ways, setWays] = useState<{ providers: Provider[]; emergency: boolean }>({ providers: [], emergency: false })
  useEffect(() => void waysIn().then(setWays), [])
  return ways
}

const ProviderButtons = ({ providers }: { providers: Provider[] }) => {
  const { next } = useSearch({ from: '/login' })
  return providers.map((provider) => (
    <a
      key={provider.id}
      className="button"
      href={signInAddress(provider, nextPath(next, location.origin))}
      onClick={awayAtProvider}
    >
      {tLogin.through(provider.title)}
    </a>
  ))
}

/** Username and password, and why the last session or attempt ended. */
export const Login = () => {
  const { step, over, ...fields } = useSignIn()
  return (
    <Welcome>
      {step ? (
        <div className="card flex w-full max-w-96 flex-col gap-4 p-6">
          <Heading title={tLogin.title}>{tLogin.title}</Heading>
          <SecondStepForm step={step} over={over} />
        </div>
      ) : (
        <PasswordForm {...fields} />
      )}
    </Welcome>
  )
}

type Fields = Omit<ReturnType<typeof useSignIn>, 'step' | 'over'>

const PasswordForm = (fields: Fields) => {
  const { busy, errors, submit, byPasskey } = fields
  const phase = usePhase()
  const { providers, emergency } = useWaysIn()
  const notice =
    phase.name === 'signed_out' && phase.reason !== 'none'
      ? tLogin[phase.reason as 'signed_out' | 'not_told' | 'revoked']
      : null
  return (
    <form noValidate onSubmit={(event) => void submit(event)} className="card flex w-full max-w-96 flex-col gap-4 p-6">
      <Heading title={tLogin.title}>{tLogin.title}</Heading>
      {notice ? (
        <p className="flex gap-2 text-muted" role="status">
          <ShapeIcon shape="dot" tone="idle" beside />
          {notice}
        </p>
      ) : null}
      {emergency ? <ProviderButtons providers={providers} /> : <Inputs {...fields} />}
      {errors.form ? (
        <p className="flex gap-2" role="alert">
          <ShapeIcon shape="octagon" tone="bad" beside />
          {errors.form}
        </p>
      ) : null}
      {emergency ? null : <Submit busy={busy} />}
      <Button aria-disabled={busy} onClick={byPasskey} word={tLogin.passkey} />
      {emergency ? (
        <details className="fold">
          <summary>{tLogin.emergency}</summary>
          <div className="flex flex-col gap-4 pt-4">
            <Inputs {...fields} />
            <Submit busy={busy} />
          </div>
        </details>
      ) : providers.length > 0 ? (
        <>
          <p className="text-center text-muted">{tLogin.or}</p>
          <ProviderButtons providers={providers} />
        </>
      ) : null}
    </form>
  )
}

const Submit = ({ busy }: { busy: boolean }) => (
  <Button type="submit" look="main" aria-disabled={busy} word={busy ? tLogin.sending : tLogin.submit} />
)

const Inputs = ({ username, setUsername, nameField, password, setPassword, passwordField, errors }: Fields) => (
  <>
    <TextField
      ref={nameField}
      id="username"
      label={tLogin.username}
      error={errors.username ?? null}
      name="username"
      autoComplete="username"
      autoCapitalize="none"
      spellCheck={false}
      value={username}
      change={setUsername}
    />
    <PasswordField
      ref={passwordField}
      id="password"
      label={tLogin.password}
      autoComplete="current-password"
      value={password}
      change={setPassword}
      errors={errors.password === undefined ? [] : [errors.password]}
      invalid={errors.password !== undefined || errors.form !== undefined}
    />
  </>
)
