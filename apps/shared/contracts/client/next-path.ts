/** The sign-in page, addresses of the API, and the remainder of `/.//host`, which leads to another host. */
const NO_PAGE = /^\/(\/|login$|(api|v1|oauth|scim)(\/|$))/

/**
 * Returns the page to open after a sign-in: a path of this origin, or the inbox. Refuses other origins in every
 * spelling that a browser would follow (`//host`, `/\host`, control characters), and what is no page.
 */
export const nextPath = (next: unknown, origin: string): string => {
  const fallback = '/inbox'
  if (typeof next !== 'string' || !/^\/(?![/\\])/.test(next) || hasControl(next)) return fallback
  let url: URL
  try {
    url = new URL(next, origin)
  } catch {
    return fallback
  }
  if (url.origin !== origin || NO_PAGE.test(url.pathname)) return fallback
  return `${url.pathname}${url.search}${url.hash}`
}

const hasControl = (text: string): boolean => {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code < 0x20 || code === 0x7f) return true
  }
  return false
}
