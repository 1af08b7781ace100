import { Eye, EyeOff } from 'lucide-react'
import { useState } from 'react'
import { tLogin } from '../words/frame/login.ts'
import { Button } from './button.tsx'

type PasswordFieldProps = {
  id: string
  label: string
  autoComplete: 'current-password' | 'new-password'
  value: string
  change: (value: string) => void
  /** The faults, one sentence each. */
  errors?: readonly string[]
  /** Marks the field as wrong although the message is elsewhere. */
  invalid?: boolean
  ref?: React.Ref<HTMLInputElement>
}

/** A password field: can reveal its text, warns of Caps Lock, and lists its faults below. */
export const PasswordField = (props: PasswordFieldProps) => {
  const { id, label, autoComplete, value, change, errors = [], invalid = errors.length > 0, ref } = props
  const [shown, setShown] = useState(false)
  const [caps, setCaps] = useState(false)
  return (
    <div>
      <label className="label" htmlFor={id}>
        {label}
      </label>
      <div className="relative">
        <input
          ref={ref}
          id={id}
          name={id}
          className="input !pr-10"
          type={shown ? 'text' : 'password'}
          autoComplete={autoComplete}
          value={value}
          onChange={(event) => change(event.target.value)}
          onKeyUp={(event) => setCaps(event.getModifierState('CapsLock'))}
          aria-invalid={invalid}
          aria-describedby={`${id}-error`}
        />
        <Button
          look="quiet icon absolute top-0 right-0"
          onClick={() => setShown(!shown)}
          aria-label={shown ? tLogin.hide : tLogin.show}
          aria-pressed={shown}
        >
          {shown ? <EyeOff size={16} aria-hidden="true" /> : <Eye size={16} aria-hidden="true" />}
        </Button>
      </div>
      <div id={`${id}-error`} className="field-error" role="alert">
        {errors.map((error) => (
          <p key={error}>{error}</p>
        ))}
        {errors.length === 0 && caps ? <p>{tLogin.caps}</p> : null}
      </div>
    </div>
  )
}
