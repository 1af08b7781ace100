// Sets theme and contrast before the first paint, so that no page flashes in the other one. Runs before any module.
;(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const more = matchMedia('(prefers-contrast: more)')
  const apply = () => {
    let chosen = {}
    try {
      chosen = JSON.parse(localStorage.getItem('signalbox.display') || '{}')
    } catch {
      // A value nobody can read counts as none.
    }
    const root = document.documentElement
    root.dataset.theme =
      chosen.theme === 'light' || chosen.theme === 'dark' ? chosen.theme : dark.matches ? 'dark' : 'light'
    root.dataset.contrast = chosen.contrast === 'more' || more.matches ? 'more' : 'normal'
    root.dataset.density = chosen.density === 'compact' ? 'compact' : 'comfortable'
  }
  apply()
  dark.addEventListener('change', apply)
  more.addEventListener('change', apply)
  addEventListener('signalbox:display', apply)
  addEventListener('storage', apply)
})()
