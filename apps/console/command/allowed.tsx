import { useId } from 'react'
import type { AllowedAction } from '../api/types.ts'

/** The server's answer about one action of an object. */
export const actionOf = (object: { allowed_actions: AllowedAction[] }, action: string): AllowedAction | undefined =>
  object.allowed_actions.find((candidate) => candidate.action === action)

/** Allowed, or only missing the password, which the dialog asks for. */
export const mayPress = (action: AllowedAction | undefined): boolean =>
  action !== undefined && (action.allowed || action.reason_code === 'reauth_required')

type ActionButtonProps = {
  action: AllowedAction | undefined
  press: () => void
  main?: boolean
  danger?: boolean
  children: React.ReactNode
}

/** A button that stays visible when it may not be pressed; the reason is its description and its tooltip. */
export const ActionButton = ({ action, press, main = false, danger = false, children }: ActionButtonProps) => {
  const id = useId()
  const allowed = mayPress(action)
  const reason = allowed ? undefined : (action?.reason ?? undefined)
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

/** The reasons of all actions that are not allowed, as text, each once; the server speaks English. */
export const WhyNot = ({ actions }: { actions: (AllowedAction | undefined)[] }) => {
  const reasons = new Set(actions.flatMap((action) => (mayPress(action) ? [] : (action?.reason ?? []))))
  return [...reasons].map((reason) => (
    <p key={reason} lang="en" className="basis-full text-table text-muted sm:text-right">
      {reason}
    </p>
  ))
}
