import { Button } from '../forms/button.tsx'
import { PasswordField } from '../forms/password.tsx'
import { Page, PageHead } from '../ui/page.tsx'
import { tAccount } from '../words/account.ts'
import { LinkProvider } from './link-provider.tsx'
import { changePassword, newPasswordErrors } from './password.api.ts'
import { PasswordRules } from './password-rules.tsx'
import { useSubmission } from './submission.ts'

/** Changes the person's password. The server judges the new one; its messages appear below the field. */
export const PasswordPage = () => {
  const { fields, type, busy, done, problem, submit } = useSubmission({ current: '', next: '' }, (typed, key) =>
    changePassword(typed.current, typed.next, key),
  )
  const wrong = problem?.code === 'current_password_wrong'
  return (
    <Page>
      <PageHead title={tAccount.password.title} note={tAccount.password.note} />
      <form noValidate onSubmit={submit} className="card flex w-full max-w-96 flex-col gap-4 p-6">
        <PasswordField
          id="current-password"
          label={tAccount.password.current}
          autoComplete="current-password"
          value={fields.current}
          change={(value) => type('current', value)}
          errors={wrong ? [tAccount.password.wrong] : []}
        />
        <PasswordField
          id="new-password"
          label={tAccount.password.next}
          autoComplete="new-password"
          value={fields.next}
          change={(value) => type('next', value)}
          errors={wrong ? [] : newPasswordErrors(problem)}
        />
        <PasswordRules password={fields.next} />
        <Button type="submit" look="main" aria-disabled={busy}>
          {busy ? tAccount.password.sending : tAccount.password.submit}
        </Button>
        <p role="status">{done ? tAccount.password.done : null}</p>
      </form>
      <LinkProvider />
    </Page>
  )
}
