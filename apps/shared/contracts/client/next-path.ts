/**
 * Returns the page to open after a sign-in: a path of this origin, or the inbox. Refuses other origins in every
 * spelling that a browser would follow (`//host`, `/\host`, control characters) and the login page itself.
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
  // The parser takes `/.//host` for a path of ours, but its remainder leads to another host.
  if (url.origin !== origin || url.pathname.startsWith('//') || url.pathname === '/login') return fallback
  return `${url.pathname}${url.search}${url.hash}`
}

const hasControl = (text: string): boolean => {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code < 0x20 || code === 0x7f) return true
  }
  return false
}
