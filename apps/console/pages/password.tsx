import { useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { changePassword } from '../api/password.ts'
import { t } from '../i18n/index.ts'
import { Heading, Page } from '../parts/page.tsx'

/** Changes one's password. What makes a good one is the server's to say: its words stand under the field. */
export const PasswordPage = () => {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [busy, setBusy] = useState(false)
  const [done, setDone] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  /** The same two passwords are the same command, also when its answer was lost. */
  const key = useRef(crypto.randomUUID())
  const typed = (set: (value: string) => void) => (event: React.ChangeEvent<HTMLInputElement>) => {
    set(event.target.value)
    key.current = crypto.randomUUID()
  }
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    if (busy || current === '' || next === '') return
    setBusy(true)
    setDone(false)
    const refused = await changePassword(current, next, key.current)
    setBusy(false)
    setProblem(refused)
    if (refused) return
    key.current = crypto.randomUUID()
    setCurrent('')
    setNext('')
    setDone(true)
  }
  const wrong = problem?.code === 'current_password_wrong'
  const weak = problem?.violations ?? []
  return (
    <Page>
      <div>
        <Heading title={t.password.title}>{t.password.title}</Heading>
        <p className="text-muted">{t.password.note}</p>
      </div>
      <form
        noValidate
        onSubmit={(event) => void submit(event)}
        className="card flex w-full max-w-96 flex-col gap-4 p-6"
      >
        <div>
          <label className="label" htmlFor="current-password">
            {t.password.current}
          </label>
          <input
            id="current-password"
            className="input"
            type="password"
            autoComplete="current-password"
            value={current}
            onChange={typed(setCurrent)}
            aria-invalid={wrong}
            aria-describedby="current-password-error"
          />
          <p id="current-password-error" className="field-error" role="alert">
            {wrong ? t.password.wrong : null}
          </p>
        </div>
        <div>
          <label className="label" htmlFor="new-password">
            {t.password.next}
          </label>
          <input
            id="new-password"
            className="input"
            type="password"
            autoComplete="new-password"
            value={next}
            onChange={typed(setNext)}
            aria-invalid={weak.length > 0}
            aria-describedby="new-password-error"
          />
          <div id="new-password-error" className="field-error" role="alert">
            {weak.map(({ code, message }) => (
              <p key={code}>{message}</p>
            ))}
            {problem && !wrong && weak.length === 0 ? <p>{`${problem.detail} ${problem.hint ?? ''}`}</p> : null}
          </div>
        </div>
        <button type="submit" className="button main" aria-disabled={busy}>
          {busy ? t.password.sending : t.password.submit}
        </button>
        <p role="status">{done ? t.password.done : null}</p>
      </form>
    </Page>
  )
}
