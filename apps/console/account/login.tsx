import { useEffect, useRef, useState } from 'react'
import { usePhase } from '../api/hooks.ts'
import { PasswordField } from '../forms/password.tsx'
import { signInError } from '../frame/sign-in-error.ts'
import { Welcome } from '../frame/welcome.tsx'
import { sessionPhase, signIn, startSession } from '../session/token.ts'
import { Heading } from '../ui/page.tsx'
import { ShapeIcon } from '../ui/status.tsx'
import { t } from '../words/index.ts'

/** Username and password; where to go next is decided by the phase that follows. */
export const Login = () => {
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState(false)
  const [errors, setErrors] = useState<{ username?: string; password?: string; form?: string }>({})
  const nameField = useRef<HTMLInputElement>(null)
  const passwordField = useRef<HTMLInputElement>(null)
  const phase = usePhase()

  useEffect(() => {
    // Somebody who is signed in and comes here by hand goes on to the console.
    if (sessionPhase().name === 'starting') void startSession()
    nameField.current?.focus()
  }, [])

  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (busy) return
    const missing = {
      ...(username.trim() === '' ? { username: t.login.missing_username } : {}),
      ...(password === '' ? { password: t.login.missing_password } : {}),
    }
    setErrors(missing)
    if (missing.username) return nameField.current?.focus()
    if (missing.password) return passwordField.current?.focus()
    setBusy(true)
    const result = await signIn(username.trim(), password)
    setBusy(false)
    if (result.ok) return
    setErrors({ form: signInError(result) })
    passwordField.current?.focus()
  }
  const notice =
    phase.name === 'signed_out' && phase.reason !== 'none'
      ? t.login[phase.reason as 'signed_out' | 'not_told' | 'revoked']
      : null

  return (
    <Welcome>
      <form
        noValidate
        onSubmit={(event) => void submit(event)}
        className="card flex w-full max-w-96 flex-col gap-4 p-6"
      >
        <Heading title={t.login.title}>{t.login.title}</Heading>
        {notice ? (
          <p className="flex gap-2 text-muted" role="status">
            <span className="mt-0.5">
              <ShapeIcon shape="dot" tone="idle" />
            </span>
            {notice}
          </p>
        ) : null}
        <div>
          <label className="label" htmlFor="username">
            {t.login.username}
          </label>
          <input
            ref={nameField}
            id="username"
            name="username"
            className="input"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            value={username}
            onChange={(event) => setUsername(event.target.value)}
            aria-invalid={errors.username !== undefined}
            aria-describedby="username-error"
          />
          <p id="username-error" className="field-error">
            {errors.username}
          </p>
        </div>
        <PasswordField
          ref={passwordField}
          id="password"
          label={t.login.password}
          autoComplete="current-password"
          value={password}
          change={setPassword}
          errors={errors.password === undefined ? [] : [errors.password]}
          invalid={errors.password !== undefined || errors.form !== undefined}
        />
        {errors.form ? (
          <p className="flex gap-2" role="alert">
            <span className="mt-0.5">
              <ShapeIcon shape="octagon" tone="bad" />
            </span>
            {errors.form}
          </p>
        ) : null}
        <button type="submit" className="button main" aria-disabled={busy}>
          {busy ? t.login.sending : t.login.submit}
        </button>
      </form>
    </Welcome>
  )
}
