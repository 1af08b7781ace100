import { Button } from '../../forms/button.tsx'
import { Welcome } from '../../frame/welcome.tsx'
import { post } from '../../session/cookie.ts'
import { Heading } from '../../ui/page.tsx'
import { tAccount } from '../../words/account.ts'
import { refusalOf } from '../password.api.ts'
import { useSubmission } from '../submission.ts'
import { CodeField, LinkUsed, useLinkToken } from './token.tsx'

/** Ends all sessions of the person to whom a security message was sent. The click does it; opening the link does not. */
export const SignOutPage = () => {
  const { fields, type, busy, done, problem, setProblem, submit } = useSubmission(
    { token: '' },
    async ({ token }, key) =>
      refusalOf(await post('/api/v1/sessions/sign-out', { token: token.trim().replace(/^.*#/, '') }, { key })),
  )
  const linked = useLinkToken('/sign-out', type, setProblem)
  if (done) return <LinkUsed done={tAccount.sign_out.done} next={tAccount.sign_out.next} />
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
        <Button type="submit" look="main" aria-disabled={busy}>
          {busy ? tAccount.sign_out.sending : tAccount.sign_out.submit}
        </Button>
      </form>
    </Welcome>
  )
}
