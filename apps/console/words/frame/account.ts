/** Words of one’s own account: sessions, password, first sign-in, display. */
export const sessions = {
  title: 'Active sessions',
  note: 'Sign out any session that you do not recognize. It takes effect immediately.',
  device: 'Browser or client',
  on: (browser: string, system: string) => `${browser} on ${system}`,
  unknown: 'Unknown',
  current: 'This session',
  address: 'Address',
  last_used: 'Last used',
  since: 'Signed in',
  end: 'Sign out',
  end_one: (device: string) => `Sign out ${device}`,
  ended: 'Session signed out.',
  end_others: 'Sign out everywhere else',
  ended_others: 'Signed out everywhere else.',
}

export const passkeys = {
  title: 'Passkeys',
  note: 'A passkey signs you in without a password, and signs approvals at gates that ask for it.',
  name: 'Name of the new passkey',
  add: 'Add a passkey',
  added: 'Passkey added.',
  remove: 'Remove',
  remove_one: (name: string) => `Remove ${name}`,
  removed: 'Passkey removed.',
  since: 'Added',
  last_used: 'Last used',
  missing_name: 'Name the passkey.',
  cancelled: 'No passkey was used. Try again, or use another one.',
  empty: 'You have no passkeys.',
}

export const password = {
  title: 'Change password',
  note: 'This signs out all your other sessions.',
  current: 'Current password',
  next: 'New password',
  wrong: 'This is not your current password.',
  submit: 'Change password',
  sending: 'Changing …',
  done: 'Password changed.',
  rules: 'Password requirements',
  guessing: 'Hard to guess, as judged by the server',
  rule: {
    PasswordTooWeakError: 'At least eight characters',
    PasswordMissingUppercaseError: 'An uppercase letter',
    PasswordMissingLowercaseError: 'A lowercase letter',
    PasswordMissingDigitError: 'A digit',
    PasswordMissingSpecialCharError: 'A character other than a letter or digit',
  },
  met: 'done',
  not_met: 'missing',
}

export const enrol = {
  title: 'Set your password',
  submit: 'Set password',
  sending: 'Setting …',
  done: 'Your password is set',
  next: 'The link has been used. Sign in with your username and the new password.',
  token: 'Enrollment token',
  token_note: 'The part after # in your enrollment link. It works once.',
  half: 'The other half of the link',
  half_note: 'Your link came in two halves, from two administrators. Paste the other one.',
}

export const display = {
  title: 'Display settings',
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  contrast: 'Contrast',
  contrasts: { system: 'System', more: 'High' },
  density: 'Table density',
  densities: { comfortable: 'Comfortable', compact: 'Compact' },
  zone: 'Time zone',
  zones: { utc: 'UTC', local: 'Local time' },
  shortcuts: 'Single-key shortcuts',
  on: 'On',
  off: 'Off',
  note: 'Saved in this browser only.',
}
