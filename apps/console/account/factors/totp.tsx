import { useQuery } from '@tanstack/react-query'
import { encodeQR } from 'qr'
import { useEffect, useRef, useState } from 'react'
import type { TotpSetup } from '../../../shared/contracts/session/totp.ts'
import { api, problemOf, read } from '../../api/client.ts'
import { Button } from '../../forms/button.tsx'
import { CodeField, digitsOf, isCode } from '../../forms/field.tsx'
import { totpQuery } from '../../queries/me.ts'
import { CopyButton } from '../../ui/copy.tsx'
import { Failure } from '../../ui/failure.tsx'
import { TimeText } from '../../values/time.tsx'
import { tAccount } from '../../words/account.ts'
import { tLogin } from '../../words/frame/login.ts'
import { ProofFor, send, Told, useChanges } from '../changes.tsx'

const PATH = '/api/v1/users/me/totp'
const words = tAccount.totp

/** The person's authenticator app: set up or replaced with its first code, or removed. All need a fresh sign-in. */
export const TotpSection = () => {
  const state = useQuery(totpQuery())
  const [setup, setSetup] = useState<TotpSetup>()
  const { busy, said, setSaid, act } = useChanges('totp')
  const change: Act = async (work, done) => {
    const ok = await act(work, done)
    if (ok) setSetup(undefined)
    return ok
  }
  const begin = async () => {
    try {
      setSetup(await read(api.POST('/v1/users/me/totp/setup', {})))
      return null
    } catch (thrown) {
      return problemOf(thrown)
    }
  }
  const on = state.data?.active === true
  return (
    <section className="flex max-w-96 flex-col items-start gap-3" aria-labelledby="totp">
      <div>
        <h2 id="totp" className="font-semibold">
          {words.title}
        </h2>
        <p className="text-muted">{words.note}</p>
      </div>
      <Told said={said} />
      {state.isError ? <Failure error={state.error} retry={() => void state.refetch()} /> : null}
      <ProofFor said={said} confirmed={() => setSaid(null)} />
      {on ? (
        <p>
          {words.on_since} <TimeText at={state.data?.created_at ?? ''} />
        </p>
      ) : state.data && !setup ? (
        <p>{words.none}</p>
      ) : null}
      {setup ? (
        <SetUp setup={setup} change={change} busy={busy} cancel={() => setSetup(undefined)} />
      ) : (
        <div className="flex flex-wrap gap-2">
          <Button aria-disabled={busy} onClick={() => void act(begin, '')} word={on ? words.replace : words.add} />
          {on ? (
            <Button
              look="quiet"
              aria-disabled={busy}
              onClick={() => void change(() => send('DELETE', PATH), words.removed)}
              word={words.remove}
            />
          ) : null}
        </div>
      )}
    </section>
  )
}

type Act = ReturnType<typeof useChanges>['act']
type SetUpProps = { setup: TotpSetup; change: Act; busy: boolean; cancel: () => void }

/** The secret of a new app, shown only now, and the field for its first code. */
const SetUp = ({ setup, change, busy, cancel }: SetUpProps) => {
  const [code, setCode] = useState('')
  const [error, setError] = useState<string | null>(null)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const set = async () => {
    const answer = await send('PUT', PATH, { setup: setup.setup, code: digitsOf(code) })
    if (answer?.code !== 'totp_invalid') return answer
    // Shown at the field.
    setError(tLogin.code_refused)
    return ''
  }
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    setError(isCode(code) ? null : tLogin.code_missing)
    if (isCode(code)) void change(set, words.set)
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-3 self-stretch">
      <QrCode text={setup.uri} label={words.scan} />
      <p className="text-muted">{words.type}</p>
      <p className="flex items-center gap-2">
        <code className="mono break-all">{setup.secret}</code>
        <CopyButton text={setup.secret} />
      </p>
      <CodeField ref={field} id="totp-code" label={words.code} value={code} change={setCode} error={error} />
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="main" aria-disabled={busy} word={words.confirm} />
        <Button look="quiet" onClick={cancel} word={words.cancel} />
      </div>
    </form>
  )
}

/** Dark on white in every theme, because cameras expect that. */
const QrCode = ({ text, label }: { text: string; label: string }) => {
  const rows = encodeQR(text, 'raw', { border: 4 })
  const squares = rows.flatMap((row, y) => row.flatMap((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : [])))
  return (
    <figure>
      <figcaption className="mb-2">{label}</figcaption>
      <svg role="img" aria-label={label} viewBox={`0 0 ${rows.length} ${rows.length}`} width="208" height="208">
        <rect width="100%" height="100%" fill="white" />
        <path d={squares.join('')} fill="black" shapeRendering="crispEdges" />
      </svg>
    </figure>
  )
}
