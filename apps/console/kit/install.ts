/** Installing the console as an app: the browser offers it, and the person asks for it in the settings. No page prompts. */
type Offer = Event & { prompt: () => Promise<unknown> }
let offer: Offer | undefined
const listeners = new Set<() => void>()

const set = (next: Offer | undefined): void => {
  offer = next
  for (const listener of listeners) listener()
}

/** Keeps the browser's offer for the settings instead of its own banner. */
export const holdInstallOffer = (): void => {
  addEventListener('beforeinstallprompt', (event) => {
    event.preventDefault()
    set(event as Offer)
  })
  addEventListener('appinstalled', () => set(undefined))
}

export const installOffer = (): Offer | undefined => offer
export const onInstallOffer = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Whether this page already runs as an installed app. */
export const isInstalled = (): boolean => matchMedia('(display-mode: standalone)').matches
