import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { PasswordField } from '../forms/password.tsx'
import { SecondStepForm } from '../forms/second-step.tsx'
import { signInError } from '../forms/sign-in-error.ts'
import { display } from '../kit/prefs.ts'
import type { SecondStep } from '../session/answer.ts'
import { listProviders, type Provider, signInAddress } from '../session/providers.ts'
import { type SignIn, signIn, signInByPasskey } from '../session/sign-in.ts'
import { currentUser, sessionPhase, showLogin } from '../session/token.ts'
import { DialogFrame } from '../ui/overlays.tsx'
import { tLogin, tSession } from '../words/frame/login.ts'

/** The session ended while a page is open: asks the same person to sign in; the page and typed text stay. */
export const SessionDialog = () => {
  const [password, setPassword] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [step, setStep] = useState<SecondStep>()
  const [providers, setProviders] = useState<Provider[]>([])
  useEffect(() => void listProviders().then(setProviders), [])
  const client = useQueryClient()
  // Reads repeat once someone is signed in, here or from another tab; a command waits until the person presses again.
  useEffect(
    () => () => {
      if (sessionPhase().name === 'signed_in') void client.invalidateQueries()
    },
    [client],
  )
  const name = currentUser()?.username ?? ''
  const enter = async (attempt: () => Promise<SignIn>) => {
    if (busy) return
    setBusy(true)
    const result = await attempt()
    setBusy(false)
    if (!result.ok && result.step) return setStep(result.step)
    end(result)
  }
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    void enter(() => signIn(name, password))
  }
  const end = (result: SignIn | null) => {
    setStep(undefined)
    // The name is known here, so only the password can be wrong.
    const said = result?.ok === false ? signInError(result, display().zone) : null
    if (!result?.ok) setError(said === tLogin.wrong ? tSession.wrong : said)
  }
  if (step)
    return (
      <DialogFrame title={tSession.title} close={() => undefined} dismissible={false}>
        <SecondStepForm step={step} over={end} />
      </DialogFrame>
    )
  return (
    <DialogFrame title={tSession.title} close={() => undefined} dismissible={false}>
      <form onSubmit={submit} className="flex flex-col gap-4">
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
          <Button look="quiet" onClick={showLogin} word={tSession.someone_else} />
          <Button aria-disabled={busy} onClick={() => void enter(signInByPasskey)} word={tLogin.passkey} />
          <Button type="submit" look="main" word={busy ? tLogin.sending : tLogin.submit} />
        </div>
        {providers.length > 0 ? <p className="text-muted">{tSession.new_tab}</p> : null}
        {providers.map((provider) => (
          <a key={provider.id} className="button" target="_blank" rel="noreferrer" href={signInAddress(provider, '/')}>
            {tLogin.through(provider.title)}
          </a>
        ))}
      </form>
    </DialogFrame>
  )
}
