import type { Problem } from '../../shared/contracts/client/problem.ts'
import { send } from '../account/changes.tsx'
import { deviceWords } from '../account/device-words.ts'
import { workerUrl } from '../kit/worker-url.ts'
import { currentUser } from '../session/token.ts'
import { tAccount } from '../words/account.ts'

/** The user whose notifications this browser shows; another person's sign-in ends them. */
const OWNER = 'signalbox.push'
const PATH = '/api/v1/notifications/push'
const words = tAccount.notifications.device

export const canPush = (): boolean =>
  'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window

const held = async (): Promise<PushSubscription | null> =>
  (await (await navigator.serviceWorker.getRegistration())?.pushManager.getSubscription()) ?? null

/** Whether this browser is subscribed. */
export const isSubscribed = async (): Promise<boolean> => canPush() && (await held()) !== null

const say = (subscription: PushSubscription): Promise<Problem | null> => {
  const { endpoint, keys } = subscription.toJSON()
  const name = deviceWords(navigator.userAgent, tAccount.sessions.on) ?? tAccount.sessions.unknown
  return send('PUT', PATH, { name, endpoint, keys })
}

/** Asks the person for permission, subscribes this browser and informs the server. Returns why this failed, or null. */
export const startPush = async (public_key: string): Promise<Problem | string | null> => {
  if ((await Notification.requestPermission()) !== 'granted') return words.blocked
  await navigator.serviceWorker.register(workerUrl('/sw.js'))
  const { pushManager } = await navigator.serviceWorker.ready
  // A subscription under an earlier key of the server would receive no messages.
  await (await pushManager.getSubscription())?.unsubscribe()
  const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: public_key })
  const refused = await say(subscription)
  if (refused === null) localStorage.setItem(OWNER, currentUser()?.user_id ?? '')
  else await subscription.unsubscribe()
  return refused
}

export const stopPush = async (): Promise<Problem | null> => {
  await (await held())?.unsubscribe()
  return send('DELETE', PATH)
}

/** After a sign-in, the subscription moves to the same person's new session. Otherwise, as on sign-out, it ends. */
export const followPush = async (): Promise<void> => {
  const subscription = await held()
  if (subscription === null) return
  if (localStorage.getItem(OWNER) === currentUser()?.user_id) await say(subscription)
  else await subscription.unsubscribe()
}
