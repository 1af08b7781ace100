import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { PasswordAgain } from '../command/fields.tsx'
import { Button } from '../forms/button.tsx'
import { Field } from '../forms/field.tsx'
import { currentUser } from '../session/token.ts'
import { ProblemText, Refused } from '../ui/failure.tsx'
import { Heading, Loading, Page } from '../ui/page.tsx'
import { Facts } from '../values/facts.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tAccount } from '../words/account.ts'
import { decideDevice, deviceQuery } from './device.api.ts'

const words = tAccount.device

/** Signs in a device without a browser: its code, the requester, and the person's approval (RFC 8628 3.3). */
export const DevicePage = () => {
  const { code = '' } = useSearch({ from: '/shell/device' })
  return (
    <Page>
      <div>
        <Heading title={words.title}>{words.title}</Heading>
        <p className="text-muted">{words.note}</p>
      </div>
      <CodeForm key={code} code={code} />
      {code === '' ? null : <Asked key={`asked ${code}`} code={code} />}
    </Page>
  )
}

/** The code is in the address, so a link can contain it and a confirmation at a provider does not lose it. */
const CodeForm = ({ code }: { code: string }) => {
  const navigate = useNavigate()
  const [typed, setTyped] = useState(code)
  const [missing, setMissing] = useState(false)
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const wanted = typed.trim().toUpperCase()
    setMissing(wanted === '')
    if (wanted !== '') void navigate({ to: '/device', search: { code: wanted } })
  }
  return (
    <form noValidate onSubmit={submit} className="flex max-w-96 flex-col items-start gap-3">
      <Field id="user-code" label={words.code} error={missing ? words.missing : null}>
        <input
          id="user-code"
          className="input mono"
          maxLength={16}
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          placeholder="XXXX-XXXX"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          aria-invalid={missing}
          aria-describedby="user-code-error"
        />
      </Field>
      <Button type="submit" word={words.look} />
    </form>
  )
}

/** The requester, and the two possible answers. */
const Asked = ({ code }: { code: string }) => {
  const found = useQuery(deviceQuery(code))
  const [busy, setBusy] = useState(false)
  const [decided, setDecided] = useState<'approve' | 'deny' | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  if (found.error) return <Refused problem={problemOf(found.error)} />
  if (!found.data) return <Loading />
  const { host } = found.data
  const decide = async (act: 'approve' | 'deny') => {
    if (busy) return
    setBusy(true)
    const refusal = await decideDevice(act, code)
    setProblem(refusal)
    if (refusal === null) setDecided(act)
    setBusy(false)
  }
  if (decided !== null) return <Decided approved={decided === 'approve'} host={host} />
  const stale = problem?.code === 'reauth_required'
  return (
    <section className="card flex w-full max-w-128 flex-col gap-4 p-6" aria-labelledby="device-request">
      <h2 id="device-request" className="font-medium">
        {words.request(host)}
      </h2>
      <DeviceFacts {...found.data} />
      <p className="flex gap-2">
        <ShapeIcon shape="diamond" tone="wait" beside />
        <span>
          <strong>{words.only_yours(host)}</strong> {words.phishing}
          {found.data.same_address ? null : ` ${words.elsewhere}`}
        </span>
      </p>
      {stale ? <PasswordAgain confirmed={() => setProblem(null)} /> : null}
      <div role="alert">{problem && !stale ? <ProblemText problem={problem} /> : null}</div>
      <div className="flex gap-2">
        <Button look="main" aria-disabled={busy || stale} onClick={() => (stale ? undefined : void decide('approve'))}>
          {words.approve}
        </Button>
        <Button aria-disabled={busy} onClick={() => void decide('deny')} word={words.deny} />
      </div>
    </section>
  )
}

type FactsProps = { user_code: string; client_id: string; ip_address: string | null; asked_at: string; host: string }

const DeviceFacts = ({ user_code, client_id, ip_address, asked_at, host }: FactsProps) => (
  <Facts
    facts={[
      [words.code, user_code, 'mono'],
      [words.machine, host, 'mono'],
      [words.client, words.clients[client_id as keyof typeof words.clients] ?? client_id],
      [words.address, ip_address ?? '–', 'mono'],
      [words.asked, <TimeText key="asked" at={asked_at} form="both" />],
    ]}
  />
)

const Decided = ({ approved, host }: { approved: boolean; host: string }) => (
  <div role="status" className="flex flex-col gap-2">
    <p>{approved ? words.approved(host, currentUser()?.username ?? '') : words.denied}</p>
    <p>
      <Link to="/settings/sessions" className="link">
        {tAccount.sessions.title}
      </Link>
    </p>
  </div>
)
