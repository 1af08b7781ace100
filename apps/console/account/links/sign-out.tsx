import { Link } from '@tanstack/react-router'
import { problemFrom } from '../../../shared/contracts/client/problem.ts'
import { Welcome } from '../../frame/welcome.tsx'
import { post } from '../../session/cookie.ts'
import { Heading } from '../../ui/page.tsx'
import { tAccount } from '../../words/account.ts'
import { tLogin } from '../../words/frame/login.ts'
import { useSubmission } from '../submission.ts'
import { CodeField, useLinkToken } from './token.tsx'

/** Returns the refusal, or null. */
const endAll = async (token: string, key: string) => {
  const answer = await post('/api/v1/sessions/sign-out', { token }, { key })
  if (answer?.ok) return null
  if (answer === null) return problemFrom(0, null)
  return problemFrom(answer.status, await answer.json().catch(() => null), answer.headers.get('retry-after'))
}

/** Ends all sessions of the person to whom a security message was sent. The click does it; opening the link does not. */
export const SignOutPage = () => {
  const { fields, type, busy, done, problem, setProblem, submit } = useSubmission({ token: '' }, ({ token }, key) =>
    endAll(token.trim().replace(/^.*#/, ''), key),
  )
  const linked = useLinkToken('/sign-out', type, setProblem)
  if (done)
    return (
      <Welcome>
        <div className="card flex w-full max-w-96 flex-col items-start gap-4 p-6">
          <Heading title={tAccount.sign_out.done}>{tAccount.sign_out.done}</Heading>
          <p className="text-muted">{tAccount.sign_out.next}</p>
          <Link to="/login" className="button main">
            {tLogin.submit}
          </Link>
        </div>
      </Welcome>
    )
  const unusable = problem?.code === 'sign_out_link_invalid'
  const error = problem && <span role="alert">{[problem.detail, problem.hint].filter(Boolean).join(' ')}</span>
  return (
    <Welcome>
      <form noValidate onSubmit={submit} className="card flex w-full max-w-96 flex-col gap-4 p-6">
        <Heading title={tAccount.sign_out.title}>{tAccount.sign_out.title}</Heading>
        <p className="text-muted">{tAccount.sign_out.lead}</p>
        {linked && !unusable ? null : (
          <CodeField
            id="sign-out-token"
            label={tAccount.sign_out.token}
            note={tAccount.sign_out.token_note}
            error={unusable ? error : null}
            value={fields.token}
            change={(value) => type('token', value)}
          />
        )}
        {error && !unusable ? <p className="field-error">{error}</p> : null}
        <button type="submit" className="button main" aria-disabled={busy}>
          {busy ? tAccount.sign_out.sending : tAccount.sign_out.submit}
        </button>
      </form>
    </Welcome>
  )
}
