// Shows pushes and opens what they are about. It answers no fetch and keeps no cache: neither data nor an old page of the
// console stays on the device. A click only opens a page, and decides no gate.

addEventListener('push', (event) => event.waitUntil(show(event.data?.json() ?? {})))

const show = async ({ tag = 'inbox', title = 'Signalbox', body = '', url = '/inbox?for=me', silent = false }) => {
  const shown = await registration.getNotifications({ tag })
  if (silent && shown.length === 0 && (await visible())) return
  await registration.showNotification(title, {
    tag,
    body,
    silent,
    renotify: !silent,
    data: { url },
    icon: '/icon-192.png',
  })
}

/** Whether a person looks at the console now, where an outcome shows itself. Browsers ask for a notification otherwise. */
const visible = async () => (await windows()).some(({ visibilityState }) => visibilityState === 'visible')
const windows = () => clients.matchAll({ type: 'window', includeUncontrolled: true })

addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.data?.url))
})

const open = async (url) => {
  const { origin, href } = new URL(url ?? '/inbox?for=me', location.origin)
  if (origin !== location.origin) return
  const found = (await windows()).find((one) => one.url === href)
  await (found ? found.focus() : clients.openWindow(href))
}

// The push service gives this browser another address: the server is told in the name of the session's cookie.
addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event)))

const renew = async ({ oldSubscription, newSubscription }) => {
  const options = (newSubscription ?? oldSubscription)?.options
  if (!options) return
  const made = newSubscription ?? (await registration.pushManager.subscribe(options))
  const { endpoint, keys } = made.toJSON()
  const session = await navigator.locks.request('signalbox-token', refreshed)
  if (!session) return
  await send('PUT', '/api/v1/notifications/push', session, { name: 'This browser', endpoint, keys })
}

/** An access token of the session, got as a new tab gets it. */
const refreshed = async () => {
  const csrf = await fetch('/v1/token/csrf', { credentials: 'include' })
  if (!csrf.ok) return undefined
  const { csrf_token } = await csrf.json()
  const answer = await send('POST', '/v1/token?response_mode=cookie', { csrf_token }, { grant_type: 'refresh_token' })
  return answer.ok ? { csrf_token, ...(await answer.json()) } : undefined
}

const send = (method, path, { csrf_token, access_token }, body) =>
  fetch(path, {
    method,
    credentials: 'include',
    headers: {
      'content-type': 'application/json',
      'x-csrf-token': csrf_token,
      'idempotency-key': crypto.randomUUID(),
      ...(access_token && { authorization: `Bearer ${access_token}` }),
    },
    body: JSON.stringify(body),
  })
