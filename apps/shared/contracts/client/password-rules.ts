/** The error names of the specification. */
export type PasswordCode =
  | 'PasswordTooWeakError'
  | 'PasswordMissingUppercaseError'
  | 'PasswordMissingLowercaseError'
  | 'PasswordMissingDigitError'
  | 'PasswordMissingSpecialCharError'
export type PasswordRule = { code: PasswordCode; message: string; holds: (password: string) => boolean }

const MIN_LENGTH = 8

/**
 * Rules 1 to 5 of the specification, in its order, over the NFC form of a password; characters are code points. Rule 6,
 * how easily it is guessed, needs the server's estimator.
 */
export const PASSWORD_RULES: readonly PasswordRule[] = [
  {
    code: 'PasswordTooWeakError',
    message: `The password needs at least ${MIN_LENGTH} characters.`,
    holds: (password) => [...password].length >= MIN_LENGTH,
  },
  {
    code: 'PasswordMissingUppercaseError',
    message: 'The password needs an uppercase letter.',
    holds: (password) => /\p{Lu}/u.test(password),
  },
  {
    code: 'PasswordMissingLowercaseError',
    message: 'The password needs a lowercase letter.',
    holds: (password) => /\p{Ll}/u.test(password),
  },
  {
    code: 'PasswordMissingDigitError',
    message: 'The password needs a digit.',
    holds: (password) => /\p{Nd}/u.test(password),
  },
  {
    code: 'PasswordMissingSpecialCharError',
    message: 'The password needs a character that is neither letter nor number.',
    holds: (password) => /[^\p{L}\p{N}]/u.test(password),
  },
]
