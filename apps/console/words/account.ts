import { device, display, enrol, notifications, passkeys, password, sessions, sign_out, totp } from './frame/account.ts'

/** Texts for the person’s account: sessions, password, first sign-in, display. */
export const tAccount = { sessions, passkeys, totp, device, notifications, password, enrol, sign_out, display }
