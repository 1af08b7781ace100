import { PASSWORD_RULES, type PasswordCode } from '../../shared/contracts/client/password-rules.ts'
import type { Strength } from './strength.ts'

export type PasswordViolation = { code: PasswordCode; message: string }

const MAX_CODE_POINTS = 128
const MAX_BYTES = 512
const MIN_SCORE = 3

/** Whether a text can be a password at all: bounded, so that it cannot overload the hash or the estimator. */
export const isPasswordText = (password: string): boolean =>
  password.isWellFormed() &&
  password.length > 0 &&
  Buffer.byteLength(password) <= MAX_BYTES &&
  [...password].length <= MAX_CODE_POINTS

/**
 * Every rule of the specification that the password breaks, in the specification's order: length, classes, strength.
 * The estimator rates the strength; its warning, else its suggestion, is the message.
 */
export const passwordViolations = (password: string, strength: Strength): PasswordViolation[] => {
  const text = password.normalize('NFC')
  const violations: PasswordViolation[] = PASSWORD_RULES.filter(({ holds }) => !holds(text)).map(
    ({ code, message }) => ({ code, message }),
  )
  if (strength.is_breached)
    violations.push({ code: 'PasswordTooWeakError', message: 'This password is known from a data breach.' })
  else if (strength.score < MIN_SCORE) {
    violations.push({
      code: 'PasswordTooWeakError',
      message: strength.warning || strength.suggestion || 'The password is too easy to guess.',
    })
  }
  return violations
}
