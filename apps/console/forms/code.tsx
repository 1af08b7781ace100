import { TextField } from './field.tsx'

/** A typed code without the spaces that apps show in it. */
export const digitsOf = (typed: string): string => typed.replaceAll(/\s/g, '')
export const isCode = (typed: string): boolean => /^[0-9]{6}$/.test(digitsOf(typed))

/** A code of an authenticator app; phones show their digit keyboard and offer a code that they know. */
export const CodeField = (props: CodeFieldProps) => (
  <TextField {...props} className="input mono" inputMode="numeric" autoComplete="one-time-code" maxLength={7} />
)
type CodeFieldProps = {
  id: string
  label: string
  note?: string
  value: string
  change: (value: string) => void
  error: string | null
  ref?: React.Ref<HTMLInputElement>
}
