/** Matches a text in linear time; `*` in the pattern stands for any run of characters. */
export const matcherOf = (pattern: string) => {
  const parts = pattern.split('*')
  return (text: string): boolean => {
    const [head = '', ...rest] = parts
    const tail = rest.pop()
    if (!text.startsWith(head)) return false
    if (tail === undefined) return text === head
    let at = head.length
    for (const part of rest) {
      const found = text.indexOf(part, at)
      if (found < 0) return false
      at = found + part.length
    }
    return text.length - tail.length >= at && text.endsWith(tail)
  }
}
