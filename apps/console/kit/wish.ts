import { useEffect } from 'react'

/** A dialog that a page should open: which one, of which object, and when this was requested. */
type Wish = { what: string; of: string; at: number }
/** How long a request waits for its page; a slower page does not open the dialog. */
const WAIT_MS = 10_000

let wish: Wish | undefined
const hearing = new Set<() => void>()

/** Asks the page of an object to open one of its dialogs, now or once it has loaded. */
export const wishFor = (what: string, of: string): void => {
  wish = { what, of, at: Date.now() }
  for (const hear of hearing) hear()
}

/** Opens the dialog requested for this object, once `grant` says that it can open. */
export const useWishes = (of: string, grant: (what: string) => boolean): void =>
  useEffect(() => {
    const hear = () => {
      if (wish?.of === of && Date.now() - wish.at < WAIT_MS && grant(wish.what)) wish = undefined
    }
    hear()
    hearing.add(hear)
    return () => void hearing.delete(hear)
  })
