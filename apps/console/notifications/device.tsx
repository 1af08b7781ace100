import { useQuery } from '@tanstack/react-query'
import { Told, useChanges } from '../account/changes.tsx'
import { problemOf } from '../api/client.ts'
import { Button } from '../forms/button.tsx'
import { offered } from '../kit/install.ts'
import { Failure } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { pushQuery } from './notifications.api.ts'
import { canPush, isSubscribed, startPush, stopPush } from './push.ts'

const words = tAccount.notifications.device

/** Notifications of this browser, and installing the console as an app. Both happen only if the person asks. */
export const ThisDevice = () => {
  const push = useQuery(pushQuery())
  const here = useQuery({ queryKey: ['notifications', 'here'], queryFn: isSubscribed })
  const { busy, said, act } = useChanges('notifications')
  if (push.isError) return <Failure error={push.error} retry={() => void push.refetch()} />
  if (!push.data || here.data === undefined) return null
  const { public_key, destination } = push.data
  const on = destination !== null && here.data
  const why = public_key === null ? words.off : canPush() ? null : words.unsupported
  const change = () =>
    act(() => (on ? stopPush() : startPush(public_key ?? '')).catch(problemOf), on ? words.stopped : words.started)
  return (
    <section aria-labelledby="notify-device" className="flex flex-col items-start gap-3">
      <h2 id="notify-device" className="card-title">
        {words.title}
      </h2>
      <Told said={said} />
      {why === null ? (
        <Button aria-disabled={busy} onClick={() => void change()} word={on ? words.stop : words.start} />
      ) : (
        <p className="text-muted">{why}</p>
      )}
      <Install />
    </section>
  )
}

const Install = () => {
  const offer = offered.event
  // The console already runs as an installed app.
  if (matchMedia('(display-mode: standalone)').matches) return null
  if (offer === undefined) return <p className="text-muted">{words.install_note}</p>
  return <Button onClick={() => void offer.prompt()} word={words.install} />
}
