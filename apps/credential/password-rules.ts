import type { Strength } from './strength.ts'

/** The error names of the specification. */
export type PasswordCode =
  | 'PasswordTooWeakError'
  | 'PasswordMissingUppercaseError'
  | 'PasswordMissingLowercaseError'
  | 'PasswordMissingDigitError'
  | 'PasswordMissingSpecialCharError'
export type PasswordViolation = { code: PasswordCode; message: string }

const MIN_LENGTH = 8
const MAX_CODE_POINTS = 128
const MAX_BYTES = 512
const MIN_SCORE = 3

/** Whether a text can be a password at all: bounded, so that neither hash nor estimator can be kept busy by it. */
export const isPasswordText = (password: string): boolean =>
  password.isWellFormed() &&
  password.length > 0 &&
  Buffer.byteLength(password) <= MAX_BYTES &&
  [...password].length <= MAX_CODE_POINTS

const CLASSES: [RegExp, PasswordCode, string][] = [
  [/\p{Lu}/u, 'PasswordMissingUppercaseError', 'The password needs an uppercase letter.'],
  [/\p{Ll}/u, 'PasswordMissingLowercaseError', 'The password needs a lowercase letter.'],
  [/\p{Nd}/u, 'PasswordMissingDigitError', 'The password needs a digit.'],
  [
    /[^\p{L}\p{N}]/u,
    'PasswordMissingSpecialCharError',
    'The password needs a character that is neither letter nor number.',
  ],
]

/**
 * Every rule of the specification that the password breaks, in its order: length, classes, strength. The strength is
 * that of the estimator; its warning, else its suggestion, is the message.
 */
export const passwordViolations = (password: string, strength: Strength): PasswordViolation[] => {
  const text = password.normalize('NFC')
  const violations: PasswordViolation[] = []
  if ([...text].length < MIN_LENGTH) {
    violations.push({ code: 'PasswordTooWeakError', message: `The password needs at least ${MIN_LENGTH} characters.` })
  }
  for (const [pattern, code, message] of CLASSES) if (!pattern.test(text)) violations.push({ code, message })
  if (strength.is_common)
    violations.push({ code: 'PasswordTooWeakError', message: 'This is one of the most common passwords.' })
  else if (strength.score < MIN_SCORE) {
    violations.push({
      code: 'PasswordTooWeakError',
      message: strength.warning || strength.suggestion || 'The password is too easy to guess.',
    })
  }
  return violations
}
