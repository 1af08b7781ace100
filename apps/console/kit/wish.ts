import { useEffect } from 'react'

/** A dialog that a page is asked to open: what, of which object, and when. */
type Wish = { what: string; of: string; at: number }
/** A page that takes longer to come is no longer waited for. */
const WAIT_MS = 10_000

let wish: Wish | undefined
const hearing = new Set<() => void>()

/** Asks the page of an object to open one of its dialogs, now or once it has come. */
export const wishFor = (what: string, of: string): void => {
  wish = { what, of, at: Date.now() }
  for (const hear of hearing) hear()
}

/** Opens the dialog that is asked of this object, once `grant` says that it can be. */
export const useWishes = (of: string, grant: (what: string) => boolean): void =>
  useEffect(() => {
    const hear = () => {
      if (wish?.of === of && Date.now() - wish.at < WAIT_MS && grant(wish.what)) wish = undefined
    }
    hear()
    hearing.add(hear)
    return () => void hearing.delete(hear)
  })
