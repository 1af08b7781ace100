import { useQuery, useQueryClient } from '@tanstack/react-query'
import { encodeQR } from 'qr'
import { useEffect, useRef, useState } from 'react'
import type { Problem } from '../../../shared/contracts/client/problem.ts'
import type { TotpSetup } from '../../../shared/contracts/session/totp.ts'
import { api, problemOf, read } from '../../api/client.ts'
import { PasswordAgain } from '../../command/fields.tsx'
import { CodeField, digitsOf, isCode } from '../../forms/code.tsx'
import { totpQuery } from '../../queries/me.ts'
import { CopyButton } from '../../ui/copy.tsx'
import { ProblemText } from '../../ui/failure.tsx'
import { TimeText } from '../../values/time.tsx'
import { tAccount } from '../../words/account.ts'
import { t } from '../../words/index.ts'
import { send } from '../changes.tsx'

const PATH = '/api/v1/users/me/totp'
const words = tAccount.totp

/** One's own authenticator app: set up by its first code, replaced the same way, removed; all by a fresh sign-in. */
export const TotpSection = () => {
  const state = useQuery(totpQuery())
  const client = useQueryClient()
  const [setup, setSetup] = useState<TotpSetup>()
  const [said, setSaid] = useState<string | Problem | null>(null)
  const begin = async () => {
    setSaid(null)
    try {
      setSetup(await read(api.POST('/v1/users/me/totp/setup', {})))
    } catch (thrown) {
      setSaid(problemOf(thrown))
    }
  }
  const ended = (answer: Problem | null, done: string) => {
    setSaid(answer ?? done)
    if (answer === null) setSetup(undefined)
    void client.invalidateQueries({ queryKey: ['totp'] })
  }
  const stale = typeof said === 'object' && said?.code === 'reauth_required'
  const on = state.data?.active === true
  return (
    <section className="flex max-w-96 flex-col items-start gap-3" aria-labelledby="totp">
      <div>
        <h2 id="totp" className="font-semibold">
          {words.title}
        </h2>
        <p className="text-muted">{words.note}</p>
      </div>
      <div role="status">
        {typeof said === 'string' ? <p>{said}</p> : said && !stale ? <ProblemText problem={said} /> : null}
      </div>
      {stale ? <PasswordAgain confirmed={() => setSaid(null)} /> : null}
      {on ? (
        <p>
          {words.on_since} <TimeText at={state.data?.created_at ?? ''} />
        </p>
      ) : state.data && !setup ? (
        <p>{words.none}</p>
      ) : null}
      {setup ? (
        <SetUp setup={setup} ended={ended} cancel={() => setSetup(undefined)} />
      ) : (
        <div className="flex flex-wrap gap-2">
          <button type="button" className="button" onClick={() => void begin()}>
            {on ? words.replace : words.add}
          </button>
          {on ? (
            <button
              type="button"
              className="button quiet"
              onClick={() => void send('DELETE', PATH).then((answer) => ended(answer, words.removed))}
            >
              {words.remove}
            </button>
          ) : null}
        </div>
      )}
    </section>
  )
}

type Ended = (answer: Problem | null, done: string) => void

/** The secret of a new app, for this moment alone, and the field for its first code. */
const SetUp = ({ setup, ended, cancel }: { setup: TotpSetup; ended: Ended; cancel: () => void }) => {
  const [code, setCode] = useState('')
  const [error, setError] = useState<string | null>(null)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (!isCode(code)) return setError(t.login.code_missing)
    const answer = await send('PUT', PATH, { setup: setup.setup, code: digitsOf(code) })
    if (answer?.code === 'totp_invalid') return setError(t.login.code_refused)
    ended(answer, words.set)
  }
  return (
    <form noValidate onSubmit={(event) => void submit(event)} className="flex flex-col gap-3 self-stretch">
      <QrCode text={setup.uri} label={words.scan} />
      <p className="text-muted">{words.type}</p>
      <p className="flex items-center gap-2">
        <code className="mono break-all">{setup.secret}</code>
        <CopyButton text={setup.secret} />
      </p>
      <CodeField ref={field} id="totp-code" label={words.code} value={code} change={setCode} error={error} />
      <div className="flex flex-wrap gap-2">
        <button type="submit" className="button main">
          {words.confirm}
        </button>
        <button type="button" className="button quiet" onClick={cancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  )
}

/** Dark on white in every theme: cameras read it so. */
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
