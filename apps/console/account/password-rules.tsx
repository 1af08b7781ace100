import { Check, Circle } from 'lucide-react'
import { PASSWORD_RULES } from '../../shared/contracts/client/password-rules.ts'
import { tAccount } from '../words/account.ts'

/** The rules that a page can check, in the server's order, each marked as met or missing while the person types. */
export const PasswordRules = ({ password }: { password: string }) => {
  const text = password.normalize('NFC')
  return (
    <div className="text-meta">
      <p className="font-semibold">{tAccount.password.rules}</p>
      <ul className="mt-1 flex flex-col gap-1">
        {PASSWORD_RULES.map(({ code, holds }) => {
          const met = holds(text)
          const Mark = met ? Check : Circle
          return (
            <li key={code} className={`flex items-center gap-2 ${met ? '' : 'text-muted'}`}>
              <Mark size={12} aria-hidden="true" />
              {tAccount.password.rule[code]}
              <span className="sr-only">{met ? tAccount.password.met : tAccount.password.not_met}</span>
            </li>
          )
        })}
        <li className="flex items-center gap-2 text-muted">
          <Circle size={12} aria-hidden="true" />
          {tAccount.password.guessing}
        </li>
      </ul>
    </div>
  )
}
