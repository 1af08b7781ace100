/** The browser's offer to install the console as an app, kept for the settings page instead of the browser's banner. */
export const offered: { event?: Event & { prompt: () => Promise<unknown> } } = {}

addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault()
  offered.event = event as Required<typeof offered>['event']
})
