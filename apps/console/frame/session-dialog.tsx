import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { PasswordField } from '../forms/password.tsx'
import { SecondStepForm } from '../forms/second-step.tsx'
import { signInError } from '../forms/sign-in-error.ts'
import { display } from '../kit/prefs.ts'
import type { SecondStep } from '../session/answer.ts'
import { currentUser, type SignIn, showLogin, signIn } from '../session/token.ts'
import { DialogFrame } from '../ui/overlays.tsx'
import { tLogin, tSession } from '../words/frame/login.ts'

/** The session ended while a page is open: asks for the same person's password; the page and typed text stay. */
export const SessionDialog = () => {
  const [password, setPassword] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [step, setStep] = useState<SecondStep>()
  const client = useQueryClient()
  const name = currentUser()?.username ?? ''
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (busy) return
    setBusy(true)
    const result = await signIn(name, password)
    setBusy(false)
    if (!result.ok && result.step) return setStep(result.step)
    end(result)
  }
  const end = (result: SignIn | null) => {
    setStep(undefined)
    if (!result?.ok) return setError(result && signInError(result, display().zone))
    // Reads repeat automatically; a command waits until the person presses again.
    void client.invalidateQueries()
  }
  if (step)
    return (
      <DialogFrame title={tSession.title} close={() => undefined} dismissible={false}>
        <SecondStepForm step={step} over={end} />
      </DialogFrame>
    )
  return (
    <DialogFrame title={tSession.title} close={() => undefined} dismissible={false}>
      <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-4">
        <p>{tSession.text(name)}</p>
        <PasswordField
          id="session-password"
          label={tLogin.password}
          autoComplete="current-password"
          value={password}
          change={setPassword}
          errors={error === null ? [] : [error]}
        />
        <div className="flex flex-wrap justify-between gap-2">
          <button type="button" className="button quiet" onClick={showLogin}>
            {tSession.someone_else}
          </button>
          <button type="submit" className="button main">
            {busy ? tLogin.sending : tLogin.submit}
          </button>
        </div>
      </form>
    </DialogFrame>
  )
}
