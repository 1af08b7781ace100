import { isHalf, joinHalves } from '../../../shared/contracts/client/enrolment.ts'
import { Button } from '../../forms/button.tsx'
import { PasswordField } from '../../forms/password.tsx'
import { Welcome } from '../../frame/welcome.tsx'
import { Heading } from '../../ui/page.tsx'
import { tAccount } from '../../words/account.ts'
import { enrol, newPasswordErrors } from '../password.api.ts'
import { PasswordRules } from '../password-rules.tsx'
import { useSubmission } from '../submission.ts'
import { CodeField, LinkUsed, useLinkToken } from './token.tsx'

/** The token of a link that came in two halves; any other text unchanged. A half may be pasted with its link. */
const wholeOf = (token: string, other: string): string => joinHalves(token, other.trim().replace(/^.*#/, '')) ?? token

/** Sets the first or a new password, with the token behind `#` of a one-time link. */
export const EnrolPage = () => {
  const { fields, type, busy, done, problem, setProblem, submit } = useSubmission(
    { token: '', other: '', password: '' },
    ({ token, other, password }, key) => enrol(wholeOf(token.trim(), other), password, key),
    ['other'],
  )
  const { token, other, password } = fields
  const linked = useLinkToken('/enrol', type, setProblem)

  if (done) return <LinkUsed done={tAccount.enrol.done} next={tAccount.enrol.next} />
  const unusable = problem?.code === 'enrolment_token_invalid'
  return (
    <Welcome>
      <form noValidate onSubmit={submit} className="card flex w-full max-w-96 flex-col gap-4 p-6">
        <Heading title={tAccount.enrol.title}>{tAccount.enrol.title}</Heading>
        {linked && !unusable ? null : (
          <CodeField
            id="enrolment-token"
            label={tAccount.enrol.token}
            note={tAccount.enrol.token_note}
            error={unusable ? <span role="alert">{newPasswordErrors(problem)}</span> : null}
            value={token}
            change={(value) => type('token', value)}
          />
        )}
        {isHalf(token.trim()) ? (
          <CodeField
            id="enrolment-half"
            label={tAccount.enrol.half}
            note={tAccount.enrol.half_note}
            value={other}
            change={(value) => type('other', value)}
          />
        ) : null}
        <PasswordField
          id="new-password"
          label={tAccount.password.next}
          autoComplete="new-password"
          value={password}
          change={(value) => type('password', value)}
          errors={unusable ? [] : newPasswordErrors(problem)}
        />
        <PasswordRules password={password} />
        <Button type="submit" look="main" aria-disabled={busy}>
          {busy ? tAccount.enrol.sending : tAccount.enrol.submit}
        </Button>
      </form>
    </Welcome>
  )
}
