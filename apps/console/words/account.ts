import { display, enrol, password, sessions } from './frame/account.ts'

/** Words of one’s own account: sessions, password, first sign-in, display. */
export const tAccount = { sessions, password, enrol, display }
