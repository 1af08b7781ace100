import { useRef, useState } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { changePassword, newPasswordErrors } from '../api/password.ts'
import { t } from '../i18n/index.ts'
import { Heading, Page } from '../parts/page.tsx'
import { PasswordField } from '../parts/password-field.tsx'
import { PasswordRules } from '../parts/password-rules.tsx'

/** Changes one's password. What makes a good one is the server's to say: its words stand under the field. */
export const PasswordPage = () => {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [busy, setBusy] = useState(false)
  const [done, setDone] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  /** The same two passwords are the same command, also when its answer was lost. */
  const key = useRef(crypto.randomUUID())
  const typed = (set: (value: string) => void) => (value: string) => {
    set(value)
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
        <PasswordField
          id="current-password"
          label={t.password.current}
          autoComplete="current-password"
          value={current}
          change={typed(setCurrent)}
          errors={wrong ? [t.password.wrong] : []}
        />
        <PasswordField
          id="new-password"
          label={t.password.next}
          autoComplete="new-password"
          value={next}
          change={typed(setNext)}
          errors={wrong ? [] : newPasswordErrors(problem)}
        />
        <PasswordRules password={next} />
        <button type="submit" className="button main" aria-disabled={busy}>
          {busy ? t.password.sending : t.password.submit}
        </button>
        <p role="status">{done ? t.password.done : null}</p>
      </form>
    </Page>
  )
}
