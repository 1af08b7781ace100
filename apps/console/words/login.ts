import { login, session } from './frame/login.ts'

/** Words of signing in, and of a session that has ended. They come with the pages and dialogs that ask for it. */
export const tLogin = login
export const tSession = session
