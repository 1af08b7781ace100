import { device, display, enrol, notifications, passkeys, password, sessions, totp } from './frame/account.ts'

/** Texts for the person’s account: sessions, password, first sign-in, display. */
export const tAccount = { sessions, passkeys, totp, device, notifications, password, enrol, display }
