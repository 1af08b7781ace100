/** What the browser offers for installing the console as an app: kept for the settings instead of its own banner. */
export const offered: { event?: Event & { prompt: () => Promise<unknown> } } = {}

addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault()
  offered.event = event as Required<typeof offered>['event']
})
