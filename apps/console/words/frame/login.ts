import type { Said } from './refusal.ts'

const ADMIN = 'Ask an administrator.'

/** Texts for signing in. */
export const tLogin = {
  title: 'Sign in',
  username: 'Username',
  password: 'Password',
  show: 'Show password',
  hide: 'Hide password',
  caps: 'Caps Lock is on.',
  submit: 'Sign in',
  sending: 'Signing in …',
  passkey: 'Use a passkey',
  code: 'Code of your authenticator app',
  code_note: 'Open the app on your phone and type the 6 digits that it shows for Signalbox.',
  code_missing: 'Enter the 6 digits that the app shows.',
  code_refused: 'The code is wrong or was already used. Wait for the next one.',
  expired: 'The sign-in has expired. Start again.',
  again: 'Start again',
  passkey_refused: 'The passkey was not accepted. Try again, or use your password.',
  wrong: 'The username or password is wrong, or this account may not sign in.',
  later: (at: string) => `Too many attempts. Try again at ${at}.`,
  locked: 'Too many attempts. Ask an administrator to unlock the account.',
  busy: (at: string) => `Sign-in is busy: too many people are signing in. Try again at ${at}.`,
  away: (at: string) => `Sign-in is not available. Try again at ${at}.`,
  no_answer: 'The server did not answer. Check the network and try again.',
  failed: 'Sign-in is not available. Try again in a moment.',
  missing_username: 'Enter your username.',
  missing_password: 'Enter your password.',
  signed_out: 'You are signed out.',
  not_told:
    'You are signed out here, but the server did not confirm it. This browser ends the session there as soon as it can.',
  revoked: 'Your session was ended elsewhere. Sign in again.',
  or: 'or',
  emergency: 'Sign in by password in an emergency',
  provider_required: 'Sign in through your provider first.',
  closed: 'This account does not sign in by password. Use a passkey or your provider.',
  through: (title: string) => `Continue with ${title}`,
  refused: {
    provider_unavailable: ['The identity provider cannot be reached.', 'Try again later, or sign in another way.'],
    provider_refuses_client: [
      'Your provider does not accept this installation: its secret there may have expired.',
      'Tell the operator.',
    ],
    provider_factor_missing: [
      'Your provider did not ask for a second factor.',
      'Set up a second factor there, then start again.',
    ],
    sign_in_expired: ['This sign-in expired or was opened twice.', 'Start again.'],
    sign_in_cancelled: [
      'Your provider refused the sign-in, or you canceled it.',
      'Start again, or ask an administrator.',
    ],
    no_account: ['You have no account here yet.', ADMIN],
    account_disabled: ['Your account is disabled.', ADMIN],
    username_missing: ['Your provider gives no username for you.', ADMIN],
    username_invalid: ['No account here can have the name that your provider gives you.', ADMIN],
    username_taken: ['Your name belongs to another account here.', ADMIN],
    email_unverified: ['The provider has not verified your e-mail address.', 'Verify it there, then start again.'],
    domain_not_allowed: ['Your e-mail domain may not sign in here.', 'Use an allowed address.'],
    subject_changed: [
      'The provider names another person than before.',
      'Sign in as the same person, or ask an administrator.',
    ],
    identity_linked: ['This identity belongs to another account.', 'Sign in with it, or link another.'],
    reauth_failed: ['The provider did not ask for your credentials again.', 'Start again.'],
  } as Record<string, Said>,
  refused_otherwise: (code: string) => `The sign-in was refused (${code}). Ask an administrator.`,
}

/** Texts for a session that has ended, and for a decision that asks who the person is. */
export const tSession = {
  title: 'Your session has ended',
  text: (name: string) => `Sign in again as ${name}. The page keeps what you typed.`,
  new_tab: 'A provider opens in a new tab. After you sign in there, this page continues.',
  someone_else: 'Sign in as someone else',
  confirm_title: 'Confirm your identity',
  confirm_text: 'You signed in some time ago. Enter your password again for this decision.',
  confirm: 'Confirm',
  wrong: 'The password is wrong.',
  use_code: 'Use a code',
  confirm_through: (title: string) => `Confirm with ${title}`,
  confirm_away: (title: string) =>
    `You signed in some time ago. Confirm at ${title}, which leads back to this page, or by a passkey or a code.`,
  confirm_factor: 'Confirm by a second factor: a passkey, or a code of your authenticator app.',
  link: (title: string) => `Link ${title}`,
  link_title: 'Identity providers',
  link_text: 'After linking, you can also sign in there. You enter your credentials at the provider.',
  link_stale: 'Your sign-in is too long ago. Sign out, sign in again, and link within five minutes.',
}
