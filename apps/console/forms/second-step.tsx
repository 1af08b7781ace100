import { useEffect, useRef, useState } from 'react'
import { display } from '../kit/prefs.ts'
import type { SecondStep } from '../session/answer.ts'
import { type SignIn, signInByCode, signInByPasskey } from '../session/sign-in.ts'
import { tLogin } from '../words/frame/login.ts'
import { Button } from './button.tsx'
import { CodeField, digitsOf, isCode } from './field.tsx'
import { signInError } from './sign-in-error.ts'

/** After the password, asks for a code or a passkey. `over` receives the outcome, unless a code may be typed again. */
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
    setError(tLogin.code_missing)
    field.current?.focus()
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-4">
      <CodeField
        ref={field}
        id="second-code"
        label={tLogin.code}
        note={tLogin.code_note}
        value={code}
        change={setCode}
        error={error}
      />
      <Button type="submit" look="main" aria-disabled={busy} word={busy ? tLogin.sending : tLogin.submit} />
      {step.factors.includes('passkey') ? (
        <Button aria-disabled={busy} onClick={() => busy || void enter(signInByPasskey(step.factor_token))}>
          {tLogin.passkey}
        </Button>
      ) : null}
      <Button look="quiet" onClick={() => over(null)} word={tLogin.again} />
    </form>
  )
}
