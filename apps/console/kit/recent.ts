type Opened = { title: string; href: string; pathname: string }
const MAX = 8

let opened: readonly Opened[] = []

/** Remembers a page that this tab has opened, in memory only. */
export const noteOpened = (title: string, { href, pathname }: { href: string; pathname: string }): void => {
  opened = [{ title, href, pathname }, ...opened.filter((one) => one.pathname !== pathname)].slice(0, MAX)
}

/** The next person at this tab may have no right to see them. */
export const forgetOpened = (): void => {
  opened = []
}

/** The pages that this tab has opened, most recent first, without `pathname`. */
export const recentlyOpened = (pathname: string): readonly Opened[] => opened.filter((one) => one.pathname !== pathname)
