import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, useSyncExternalStore } from 'react'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { problemOf } from '../api/client.ts'
import { installOffer, isInstalled, onInstallOffer } from '../kit/install.ts'
import { pushQuery } from '../queries/me.ts'
import { ProblemText } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { canPush, isSubscribed, startPush, stopPush } from './push.ts'

const words = tAccount.notifications.device

/** This browser: whether it shows notifications, and the console as an installed app. Both only when the person asks. */
export const ThisDevice = () => {
  const push = useQuery(pushQuery())
  const here = useQuery({ queryKey: ['notifications', 'here'], queryFn: isSubscribed })
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<string | Problem | null>(null)
  if (!push.data || here.data === undefined) return null
  const { public_key, destination } = push.data
  const on = destination !== null && here.data
  const change = async () => {
    if (busy || public_key === null) return
    setBusy(true)
    const refused = await (on ? stopPush() : startPush(public_key)).catch(problemOf)
    setSaid(refused === 'denied' ? words.blocked : (refused ?? (on ? words.stopped : words.started)))
    await client.invalidateQueries({ queryKey: ['notifications'] })
    setBusy(false)
  }
  const why = public_key === null ? words.off : canPush() ? null : words.unsupported
  return (
    <section aria-labelledby="notify-device" className="flex flex-col items-start gap-3">
      <h2 id="notify-device">{words.title}</h2>
      <div role="status">{typeof said === 'string' ? <p>{said}</p> : said ? <ProblemText problem={said} /> : null}</div>
      {why === null ? (
        <button type="button" className="button" aria-disabled={busy} onClick={() => void change()}>
          {on ? words.stop : words.start}
        </button>
      ) : (
        <p className="text-muted">{why}</p>
      )}
      <Install />
    </section>
  )
}

const Install = () => {
  const offer = useSyncExternalStore(onInstallOffer, installOffer)
  if (isInstalled()) return null
  if (offer === undefined) return <p className="text-muted">{words.install_note}</p>
  return (
    <button type="button" className="button" onClick={() => void offer.prompt()}>
      {words.install}
    </button>
  )
}
