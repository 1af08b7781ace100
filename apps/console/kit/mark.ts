let plain: string | undefined

/** Writes the number of the inbox on the favicon, and on the icon of the installed app. 0 removes it. */
export const markWaiting = (waiting: number): void => {
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon === null) return
  plain ??= icon.href
  icon.href = waiting === 0 ? plain : plain.replace(END, encodeURIComponent(numbered(waiting)))
  // Only an installed app has a badge.
  void (waiting === 0 ? navigator.clearAppBadge?.() : navigator.setAppBadge?.(waiting))?.catch(() => {})
}

const END = encodeURIComponent('</svg>')
const numbered = (waiting: number): string =>
  `<circle cx="21" cy="21" r="11" fill="#b3261e"/><text x="21" y="26" font-family="sans-serif" font-size="15" font-weight="700" text-anchor="middle" fill="#fff">${waiting > 9 ? '9+' : waiting}</text></svg>`
