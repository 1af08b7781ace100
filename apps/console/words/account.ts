import { device, display, enrol, notifications, passkeys, password, sessions, totp } from './frame/account.ts'

/** Words of one’s own account: sessions, password, first sign-in, display. */
export const tAccount = { sessions, passkeys, totp, device, notifications, password, enrol, display }
