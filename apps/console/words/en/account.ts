/** Words of one’s own account: sessions, password, first sign-in, display. */
export const sessions = {
  title: 'Where you are signed in',
  note: 'Sign out what you do not know. It takes effect at once.',
  device: 'Browser or client',
  on: (browser: string, system: string) => `${browser} on ${system}`,
  unknown: 'Unknown',
  current: 'This one',
  address: 'Address',
  last_used: 'Last used',
  since: 'Signed in',
  end: 'Sign out',
  end_one: (device: string) => `Sign out ${device}`,
  ended: 'Signed out there.',
  end_others: 'Sign out everywhere else',
  ended_others: 'Signed out everywhere else.',
}

export const password = {
  title: 'Change password',
  note: 'Every other session of yours ends with the old password.',
  current: 'Current password',
  next: 'New password',
  wrong: 'This is not your current password.',
  submit: 'Change password',
  sending: 'Changing …',
  done: 'The password is changed.',
  rules: 'A good password',
  guessing: 'It is not easy to guess; the server tells.',
  rule: {
    PasswordTooWeakError: 'At least eight characters',
    PasswordMissingUppercaseError: 'An uppercase letter',
    PasswordMissingLowercaseError: 'A lowercase letter',
    PasswordMissingDigitError: 'A digit',
    PasswordMissingSpecialCharError: 'A character that is neither letter nor number',
  },
  met: 'done',
  not_met: 'missing',
}

export const enrol = {
  title: 'Set your password',
  submit: 'Set password',
  sending: 'Setting …',
  done: 'Your password is set',
  next: 'The link is used up. Sign in with your username and the new password.',
  token: 'Enrolment token',
  token_note: 'What stands behind # in the link that you were given. It works once.',
}

export const display = {
  title: 'Display settings',
  theme: 'Theme',
  themes: { system: 'As the system', light: 'Light', dark: 'Dark' },
  contrast: 'Contrast',
  contrasts: { system: 'As the system', more: 'High' },
  density: 'Density of tables',
  densities: { comfortable: 'Comfortable', compact: 'Compact' },
  zone: 'Times in',
  zones: { utc: 'UTC', local: 'Local time' },
  shortcuts: 'Single-key shortcuts',
  on: 'On',
  off: 'Off',
  note: 'Kept in this browser only.',
}
