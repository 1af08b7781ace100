import type { LinkOptions } from '@tanstack/react-router'

/** One line of the list: its text, words at its end, and where it leads or which dialog it opens there. */
export type Item = {
  key: string
  text: string
  aside: React.ReactNode
  /** The title of its operation, by which it is found too. */
  of?: string
  /** Its id, by whose end it is found. */
  id?: string | undefined
  link?: LinkOptions | undefined
  href?: string
  wish?: { what: string; of: string }
}
