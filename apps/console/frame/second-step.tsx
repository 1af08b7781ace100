import { useEffect, useRef, useState } from 'react'
import { CodeField, digitsOf, isCode } from '../forms/code.tsx'
import { display } from '../kit/prefs.ts'
import type { SecondStep } from '../session/answer.ts'
import { type SignIn, signInByCode, signInByPasskey } from '../session/token.ts'
import { t } from '../words/index.ts'
import { signInError } from './sign-in-error.ts'

/** The password was right: asks for a code, or for a passkey. `over` gets how it ended, unless a code may be typed again. */
export const SecondStepForm = ({ step, over }: { step: SecondStep; over: (end: SignIn | null) => void }) => {
  const [code, setCode] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const enter = async (attempt: Promise<SignIn>) => {
    setBusy(true)
    const result = await attempt
    setBusy(false)
    if (result.ok || result.code !== 'totp_invalid') return over(result)
    setError(signInError(result, display().zone))
    setCode('')
    field.current?.focus()
  }
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    if (busy) return
    if (isCode(code)) return void enter(signInByCode(step, digitsOf(code)))
    setError(t.login.code_missing)
    field.current?.focus()
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-4">
      <CodeField
        ref={field}
        id="second-code"
        label={t.login.code}
        note={t.login.code_note}
        value={code}
        change={setCode}
        error={error}
      />
      <button type="submit" className="button main" aria-disabled={busy}>
        {busy ? t.login.sending : t.login.submit}
      </button>
      {step.factors.includes('passkey') ? (
        <button
          type="button"
          className="button"
          aria-disabled={busy}
          onClick={() => busy || void enter(signInByPasskey(step.factor_token))}
        >
          {t.login.passkey}
        </button>
      ) : null}
      <button type="button" className="button quiet" onClick={() => over(null)}>
        {t.login.again}
      </button>
    </form>
  )
}
