import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { CopyButton } from '../ui/copy.tsx'
import { Failure } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { secretQuery, type Whose } from './notifications.api.ts'

const words = tAccount.notifications

/** The secret that verifies the messages of a webhook, read once it is asked for. */
type SecretProps = { whose: Whose; id: string; label: string; renew: () => void }
export const WebhookSecret = ({ whose, id, label, renew }: SecretProps) => {
  const [asked, setAsked] = useState(false)
  const { data, error, refetch } = useQuery({ ...secretQuery(id, whose), enabled: asked })
  if (error) return <Failure error={error} retry={() => void refetch()} />
  // A secret that was read before is still held, and shown only once it is asked for again.
  if (asked && data)
    return (
      <span className="flex items-center gap-1">
        <code className="min-w-0 wrap-anywhere">{data.secret}</code>
        <CopyButton text={data.secret} label={words.secret} />
        <button type="button" className="link" aria-label={words.renew_secret_of(label)} onClick={renew}>
          {words.renew_secret}
        </button>
      </span>
    )
  return (
    <button type="button" className="link" aria-label={words.secret_of(label)} onClick={() => setAsked(true)}>
      {words.secret}
    </button>
  )
}
