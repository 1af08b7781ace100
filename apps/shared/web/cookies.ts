/** Parses the cookies of one request: every value of every name, because a repeated name is an attack, not a choice. */
export const parseCookies = (header: string | undefined): Map<string, string[]> => {
  const cookies = new Map<string, string[]>()
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at < 0) continue
    const name = part.slice(0, at).trim()
    const values = cookies.get(name)
    if (values) values.push(part.slice(at + 1).trim())
    else cookies.set(name, [part.slice(at + 1).trim()])
  }
  return cookies
}

/** Returns the value of a cookie that is present exactly once. */
export const onlyCookie = (header: string | undefined, name: string): string | undefined => {
  const values = parseCookies(header).get(name) ?? []
  return values.length === 1 ? values[0] : undefined
}
