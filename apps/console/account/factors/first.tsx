import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { nextPath } from '../../../shared/contracts/client/next-path.ts'
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
  useEffect(() => {
    if (!proved) return
    void renew(accessToken()).then(() => {
      if (!isEnrolling()) void navigate({ href: nextPath(next, location.origin), replace: true })
    })
  }, [proved, next, navigate])
  return (
    <Welcome>
      <div className="card flex w-full max-w-160 flex-col gap-4 p-6">
        <p role="status">{proved ? tAccount.passkeys.sign_in_again : tAccount.passkeys.required}</p>
        <PasskeysPage />
        <button type="button" className="button self-start" onClick={() => void signOut()}>
          {t.nav.sign_out}
        </button>
      </div>
    </Welcome>
  )
}
