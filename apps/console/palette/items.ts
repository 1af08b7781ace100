import type { LinkOptions } from '@tanstack/react-router'

/** One line of the list: its text, the note at its end, and the page or dialog that it opens. */
export type Item = {
  key: string
  text: string
  aside: React.ReactNode
  /** The title of its operation, which also finds it. */
  of?: string
  /** Its id, whose end also finds it. */
  id?: string | undefined
  link?: LinkOptions | undefined
  href?: string
  wish?: { what: string; of: string }
}
