import type { Preferences } from '../../shared/contracts/identity/preferences.ts'
import { api, read } from '../api/client.ts'
import { type Display, display, setDisplay } from '../kit/prefs.ts'
import { onPhase, sessionPhase } from '../session/token.ts'

/** Display settings, kept by the server for all devices; this browser keeps a copy for first paint and sign-in. */
const PATH = '/v1/users/me/preferences'
/** The longest that a sign-in waits for the settings. */
const LIMIT_MS = 2000

let taken: Promise<boolean> | undefined
let taking = false
let known = false
let sending = Promise.resolve()
let failed = false
const listeners = new Set<() => void>()

/** Whether the newest change has not reached the server. */
export const isUnkept = (): boolean => failed
export const onKept = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Applies the settings of the other devices, once. Resolves to true if the page is in another language. */
export const takeKept = (): Promise<boolean> => {
  taken ??= take().catch(() => {
    taken = undefined
    return false
  })
  return taken
}

/** Does the same for a page in use, and reloads it for another language unless the person is typing. */
export const followKept = async (): Promise<void> => {
  const isTyping = document.activeElement?.matches('input, textarea, select, [role=dialog] *') ?? false
  if ((await takeKept()) && !isTyping) location.reload()
}

const take = async (): Promise<boolean> => {
  const { language, ...look } = await read(api.GET(PATH, { signal: AbortSignal.timeout(LIMIT_MS) }))
  taking = true
  setDisplay(look as Partial<Display>)
  taking = false
  known = true
  if (language === undefined || language === chosenLanguage()) return false
  setCookie(language)
  return language !== document.documentElement.lang
}

window.addEventListener('signalbox:display', () => taking || keep())
// The next person has different settings.
onPhase(() => {
  if (sessionPhase().name !== 'signed_out') return
  taken = undefined
  known = false
})

/** Sets the language; from the next load on, the gateway sends the page in it. */
export const setLanguage = async (language: string): Promise<void> => {
  setCookie(language)
  keep()
  await sending
  location.reload()
}

/** Saves in sequence, so that the newest change wins. Settings that were never read are not replaced. */
function keep(): void {
  sending = sending.then(async () => {
    const language = chosenLanguage() as Preferences['language']
    const body: Preferences = { ...display(), ...(language && { language }) }
    const header = { 'idempotency-key': crypto.randomUUID() }
    const put = known ? read(api.PUT(PATH, { params: { header }, body })) : Promise.reject()
    failed = await put.then(
      () => false,
      () => true,
    )
    for (const listener of listeners) listener()
  })
}

const chosenLanguage = (): string | undefined => /(?:^|; )language=(\w+)/.exec(document.cookie)?.[1]

const setCookie = (language: string): void => {
  const secure = location.protocol === 'https:' ? '; Secure' : ''
  // biome-ignore lint/suspicious/noDocumentCookie: not every browser in use has the Cookie Store API
  document.cookie = `language=${language}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`
}
