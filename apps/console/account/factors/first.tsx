import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useState } from 'react'
import { nextPath } from '../../../shared/contracts/client/next-path.ts'
import { PasswordAgain } from '../../command/fields.tsx'
import { Button } from '../../forms/button.tsx'
import { Welcome } from '../../frame/welcome.tsx'
import { passkeysQuery, totpQuery } from '../../queries/me.ts'
import { accessToken, isEnrolling, renew, signOut } from '../../session/token.ts'
import { tAccount } from '../../words/account.ts'
import { t } from '../../words/index.ts'
import { PasskeysPage } from './passkeys.tsx'

/** The only page for a session whose person still needs a second factor. It continues once they have one. */
export const FirstFactorPage = () => {
  const navigate = useNavigate()
  const { next } = useSearch({ from: '/second-factor' })
  const passkeys = useQuery(passkeysQuery())
  const totp = useQuery(totpQuery())
  const proved = (passkeys.data?.items.length ?? 0) > 0 || totp.data?.active === true
  /** This session began without the factor: a provider's, which no password precedes. */
  const [unconfirmed, setUnconfirmed] = useState(false)
  const resume = useCallback(() => {
    if (isEnrolling()) setUnconfirmed(true)
    else void navigate({ href: nextPath(next, location.origin), replace: true })
  }, [next, navigate])
  useEffect(() => {
    if (proved) void renew(accessToken()).then(resume)
  }, [proved, resume])
  return (
    <Welcome>
      <div className="card flex w-full max-w-160 flex-col gap-4 p-6">
        <p role="status">{unconfirmed ? tAccount.passkeys.confirm : tAccount.passkeys.required}</p>
        {unconfirmed ? <PasswordAgain factor confirmed={resume} /> : <PasskeysPage />}
        <Button look="self-start" onClick={() => void signOut()} word={t.nav.sign_out} />
      </div>
    </Welcome>
  )
}
