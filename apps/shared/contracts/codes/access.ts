import type { Codes } from './entry.ts'

/** The caller is unknown, or may not do this. */
export const ACCESS = {
  invalid_credentials: { invalid_credentials: ['The username or password is wrong.', 'Check both and try again.'] },
  invalid_token: {
    token_missing: ['The request needs an access token.', 'Sign in and send it as a bearer token.'],
    invalid_token: ['The access token is refused.', 'Refresh it, or sign in again.'],
    invalid_client: [
      'The credential of the machine is refused.',
      'An administrator or auditor finds the cause in the audit log.',
    ],
    invalid_grant: [
      'The refresh token, code or CI token is refused.',
      'Sign in again. For a CI token, an owner of the machine finds the cause: signalbox machine refusals NAME.',
    ],
    certificate_required: ["The listener accepts the platform's own apps only.", 'Call with a client certificate.'],
    // Sign-in through a provider
    sign_in_expired: ['This sign-in expired, was opened twice or began in another browser.', 'Start again.'],
    sign_in_cancelled: [
      'The provider refused the sign-in, or it was canceled there.',
      'Start again. If that does not help, ask an administrator whether the provider lets you in.',
    ],
    id_token_issuer: ['The ID token is of another issuer.', 'Contact an administrator.'],
    id_token_audience: ['The ID token is for another client.', 'Contact an administrator.'],
    id_token_nonce: ['The ID token belongs to another sign-in.', 'Start again.'],
    id_token_time: ['The ID token is expired or not valid yet.', 'Check both clocks; start again.'],
    id_token_invalid: ["The provider's answer is refused.", 'Contact an administrator.'],
  },
  policy_denied: {
    no_account: ['You have no account here, and this provider does not create one for you.', 'Ask an administrator.'],
    username_missing: [
      'The provider gives no username for you.',
      'Ask an administrator to correct username_claim in the file of providers.',
    ],
    username_invalid: [
      'No account here can have the name that the provider gives you.',
      'Ask an administrator to have it changed at the provider.',
    ],
    device_grant_off: [
      'Sign-in by device code is turned off in this installation.',
      'Sign in with a password or through a provider.',
    ],
    local_login_closed: [
      'This account does not sign in by password: passwords are for emergency accounts here.',
      'Sign in through your identity provider, or by a passkey.',
    ],
    provider_required: [
      'The provider of this account has not signed the person in for too long.',
      'Sign in through the provider, or ask an administrator to unlink it.',
    ],
    account_disabled: ['The account is disabled.', 'Ask an administrator.'],
    email_unverified: [
      'The provider has not verified your e-mail address.',
      'Verify it at the provider, then start again.',
    ],
    domain_not_allowed: ['Your e-mail domain may not sign in here.', 'Use your address of an allowed domain.'],
    subject_changed: [
      'The provider names a different person than before.',
      'Sign in as the same person, or ask an administrator.',
    ],
    provider_factor_missing: [
      'The provider did not ask for a second factor.',
      'Set up a second factor at the provider, then start again.',
    ],
    reauth_failed: ['The provider did not ask for your credentials again.', 'Start again.'],
    not_an_agent: [
      'The pool does not list you as an agent.',
      'Name the machine in `agents` of the pool in the policy of the executors.',
    ],
    sandbox_needed: [
      'The pool gives work only to agents that run jobs in a sandbox.',
      "Set `sandbox` in the agent's file.",
    ],
    permission_missing: ['You lack a permission.', 'Ask an administrator for a role that has it.'],
    out_of_scope: ['Your roles do not cover this object.', 'Ask for a role that covers it.'],
    reauth_required: ['Your sign-in is too old.', 'Confirm who you are and repeat the request.'],
    invalid_token: ['The token is refused.', 'Send a valid token for this listener.', 401],
    certificate_required: [
      "The listener accepts the platform's own apps only.",
      'Call with a client certificate.',
      401,
    ],
    csrf_failed: [
      'The CSRF token is missing or wrong.',
      'Read the token from GET /v1/token/csrf and send the request again.',
    ],
    origin_not_allowed: ['Requests from this origin are not allowed.', 'Use an allowed origin.'],
    machine_vote: ['Machines do not decide.', 'Use a gate of the kind external_check.'],
    network_refused: [
      'The credential of the machine may not be used from this address.',
      'Use it from one of its networks, or ask for a new credential with this one.',
    ],
    person_required: ['Only a person can do this.', 'Sign in as a person.'],
    freeze_elsewhere: ['No person made this freeze.', 'Withdraw it where it was made: in its file or control plane.'],
    not_your_schedule: ['Only its owner may start the schedule.', 'Create your own schedule.'],
    self_action: ['You cannot do this to yourself.', 'Ask another administrator.'],
    self_grant: ['You cannot give rights to yourself.', 'Ask another administrator.'],
    second_admin: ['You requested this change, or it concerns you.', 'Another administrator must confirm it.'],
    not_your_change: ['You have no part in this change.', 'Ask the requester, or reject it.'],
    renewal_required: ['An administrator saw the whole enrolment link of the account.', 'Request a new link.'],
    bulk_not_allowed: ['This gate cannot be decided in bulk.', 'Open the gate and decide it there.'],
    self_approval: ['You requested this operation.', 'Another person must approve it.'],
    self_patch_approval: ['You proposed this patch.', 'Another person must approve it.'],
    second_person_needed: [
      'A second person must review this first.',
      'Pause the operation, retry without input_overrides, and set the inputs by an intervention.',
    ],
    second_person: ['You have already approved this.', 'Another person must approve it.'],
    not_eligible: ['You are not in any of the groups that decide.', 'Ask one of the eligible people.'],
    assertion_invalid: [
      "The passkey's answer is refused.",
      'Use a passkey of your own, on this site, with your PIN, fingerprint or face.',
    ],
    totp_invalid: [
      'The code is wrong or was already used.',
      'Wait for the next code of the app, and check that the clock of your phone is right.',
    ],
    second_factor_required: [
      'The password is right; you need a second factor too.',
      'Send factor_token with grant_type second_factor, and the answer of a passkey or the code of your app, as factors says.',
    ],
    factor_required: [
      'This needs a second factor, which this session has not proved.',
      'Add a passkey or an authenticator app under “Passkeys and codes”, or sign in with the one you have.',
    ],
    signature_required: [
      'This gate needs your passkey.',
      'Approve it in the console, which asks for the passkey. Without one, add it under “Passkeys and codes” first.',
    ],
    tainted_right: [
      'Someone who takes part in the operation, or lately a provider, gave you this right.',
      'Another person must decide.',
    ],
    signature_invalid: [
      'The webhook is not signed as its schedule demands, or is too old.',
      'Sign it with the secret of the schedule; make a new one if it is lost.',
      401,
    ],
    hard_policy: ['A policy forbids this.', 'Change the plan so that the policy named in the detail allows it.'],
    risk_ceiling: ['The plan is riskier than its intent allows.', 'Raise the ceiling, or change less.'],
    secret_not_allowed: [
      'The executor pool may not read this secret.',
      'Use another pool, or extend the executor policy.',
    ],
    force_not_allowed: ['You may not force this.', 'Ask for the permission, or do not force it.'],
    break_glass_not_allowed: ['Break-glass is not allowed here.', 'Wait for the regular approvals.'],
  },
} as const satisfies Codes
