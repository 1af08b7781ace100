import { useId } from 'react'
import type { AllowedAction } from '../api/types.ts'
import { t } from '../words/index.ts'

/** The server's answer about one action of an object. */
export const actionOf = (object: { allowed_actions: AllowedAction[] }, action: string): AllowedAction | undefined =>
  object.allowed_actions.find((candidate) => candidate.action === action)

/** Whether the action is allowed, or lacks only the password, which the dialog asks for. */
export const mayPress = (action: AllowedAction | undefined): boolean =>
  action !== undefined && (action.allowed || action.reason_code === 'reauth_required')

/** Whether this person's permissions forbid it, whatever the object's state. */
const isNever = (action: AllowedAction | undefined): boolean => action?.reason_code === 'permission_missing'

type ActionButtonProps = {
  action: AllowedAction | undefined
  press: () => void
  main?: boolean
  danger?: boolean
  children: React.ReactNode
}

/**
 * A button that stays visible while it cannot be pressed; the reason is its description and its tooltip. Actions that
 * the person's permissions never allow have no button.
 */
export const ActionButton = ({ action, press, main = false, danger = false, children }: ActionButtonProps) => {
  const id = useId()
  const allowed = mayPress(action)
  const reason = allowed ? undefined : (action?.reason ?? undefined)
  if (isNever(action)) return null
  return (
    <>
      <button
        type="button"
        className={`button ${main ? 'main' : ''} ${danger ? 'danger' : ''}`}
        aria-disabled={!allowed}
        aria-describedby={reason ? id : undefined}
        title={reason}
        onClick={() => allowed && press()}
      >
        {children}
      </button>
      {reason ? (
        <span id={id} lang="en" className="sr-only">
          {reason}
        </span>
      ) : null}
    </>
  )
}

type WhyNotProps = { actions: (AllowedAction | undefined)[]; fold?: (action: AllowedAction) => boolean }

/**
 * Why actions are not possible now, each reason once. Those that `fold` names, by default the ones that the permissions
 * never allow, are under one question. The server speaks English.
 */
export const WhyNot = ({ actions, fold = isNever }: WhyNotProps) => {
  const refused = actions.flatMap((action) => (action === undefined || mayPress(action) ? [] : action))
  const never = Map.groupBy(refused.filter(fold), ({ reason }) => reason)
  const reasons = new Set(refused.flatMap((action) => (fold(action) ? [] : (action.reason ?? []))))
  return (
    <>
      {[...reasons].map((reason) => (
        <p key={reason} lang="en" className={REASON}>
          {reason}
        </p>
      ))}
      {never.size > 0 ? (
        <details className={`${REASON} print:hidden`}>
          <summary>{t.cannot}</summary>
          {[...never].map(([reason, all]) => (
            <p key={reason} lang="en">
              {[...new Set(all.map(({ action }) => action.replaceAll('_', ' ')))].join(', ')}: {reason}
            </p>
          ))}
        </details>
      ) : null}
    </>
  )
}
const REASON = 'basis-full text-table text-muted lg:[:not(.decide)>&]:text-right'
