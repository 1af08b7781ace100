/**
 * Messages between the tabs of one browser (console.md section 3). A tab that signed in or refreshed gives its token to
 * the others, a new tab asks for it, and a sign-out reaches all. Same origin only: a BroadcastChannel.
 */
export type Session = {
  access_token: string
  expires_at: number
  session_id: string
  user_id: string
  username: string
}
export type Goodbye = 'signed_out' | 'not_told' | 'revoked'
export type Token = { kind: 'token'; session: Session; csrf_token: string | null }
/** `session_id`: of a revoked session; an older build names none. */
export type Logout = { kind: 'logout'; reason: Goodbye; session_id?: string | undefined }
type Message = { kind: 'ask' } | Token | Logout

/** How long a new tab waits for another tab that holds a token. */
const ASK_MS = 100

const channel = new BroadcastChannel('signalbox-auth')

export const say = (message: Message): void => channel.postMessage(message)

/** Receives the messages of the other tabs, never those of this tab. Returns a function that stops it. */
export const hear = (listener: (message: Message) => void): (() => void) => {
  const heard = (event: MessageEvent<Message>) => listener(event.data)
  channel.addEventListener('message', heard)
  return () => channel.removeEventListener('message', heard)
}

/** The token of another tab; null if none answers with one soon. */
export const askSiblings = (): Promise<Token | null> =>
  new Promise((resolve) => {
    const done = (found: Token | null) => {
      stop()
      resolve(found)
    }
    const stop = hear((message) => {
      if (message.kind === 'token') done(message)
    })
    say({ kind: 'ask' })
    setTimeout(() => done(null), ASK_MS)
  })
