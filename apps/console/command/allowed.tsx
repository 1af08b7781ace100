import { useId } from 'react'
import type { AllowedAction } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { useRefusal } from '../words/frame/refusal.ts'
import { t } from '../words/index.ts'

/** The server's answer about one action of an object. */
export const actionOf = (object: { allowed_actions: AllowedAction[] }, action: string): AllowedAction | undefined =>
  object.allowed_actions.find((candidate) => candidate.action === action)

/** Whether the action is allowed, or lacks only the password, which the dialog asks for. */
export const mayPress = (action: AllowedAction | undefined): boolean =>
  action !== undefined && (action.allowed || action.reason_code === 'reauth_required')

/** Whether this person's permissions forbid it, whatever the object's state. */
export const isNever = (action: AllowedAction | undefined): boolean => action?.reason_code === 'permission_missing'

/** Why an action is refused, in the language of the page if its code has a text there. The server speaks English. */
export const Reason = ({ action: { reason, reason_code } }: { action: AllowedAction }) => {
  const said = useRefusal(reason_code ?? '')
  return said ? <span title={reason ?? undefined}>{said[0]}</span> : <span lang="en">{reason}</span>
}

/** Why a person cannot do it: our own words, or an action that the server refuses. */
export type Why = string | AllowedAction
export const Because = ({ why }: { why: Why }) => (typeof why === 'string' ? why : <Reason action={why} />)

type ActionButtonProps = {
  action: AllowedAction | undefined
  press: () => void
  main?: boolean
  danger?: boolean
  children: React.ReactNode
}

/** A button that stays visible while disabled, with the reason. Actions that permissions never allow have none. */
export const ActionButton = ({ action, press, main = false, danger = false, children }: ActionButtonProps) => {
  const id = useId()
  const allowed = mayPress(action)
  const refused = allowed || !action?.reason ? undefined : action
  if (isNever(action)) return null
  return (
    <>
      <Button
        look={`${main ? 'main' : ''} ${danger ? 'danger' : ''}`}
        aria-disabled={!allowed}
        aria-describedby={refused && id}
        title={refused?.reason ?? undefined}
        onClick={() => allowed && press()}
      >
        {children}
      </Button>
      {refused ? (
        <span id={id} className="sr-only">
          <Reason action={refused} />
        </span>
      ) : null}
    </>
  )
}

type WhyNotProps = { actions: (AllowedAction | undefined)[]; fold?: (action: AllowedAction) => boolean }

/**
 * Why actions are not possible now, each reason once. Those that `fold` names, by default the ones that the permissions
 * never allow, are under one question.
 */
export const WhyNot = ({ actions, fold = isNever }: WhyNotProps) => {
  const refused = actions.flatMap((action) => (action === undefined || mayPress(action) ? [] : action))
  const never = Map.groupBy(refused.filter(fold), ({ reason }) => reason)
  const now = Map.groupBy(
    refused.filter((action) => action.reason && !fold(action)),
    ({ reason }) => reason,
  )
  return (
    <>
      {[...now].map(([reason, [action]]) => (
        <p key={reason} className={REASON}>
          {action ? <Reason action={action} /> : null}
        </p>
      ))}
      {never.size > 0 ? (
        <details className={`${REASON} print:hidden`}>
          <summary>{t.cannot}</summary>
          {[...never].map(([reason, all]) => (
            <p key={reason}>
              <span lang="en">{[...new Set(all.map(({ action }) => action.replaceAll('_', ' ')))].join(', ')}</span>:{' '}
              {all[0] ? <Reason action={all[0]} /> : null}
            </p>
          ))}
        </details>
      ) : null}
    </>
  )
}
const REASON = 'basis-full text-table text-muted lg:[:not(.decide)>&]:text-right'
