import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { HookSecretView } from '../../shared/contracts/operations/schedules.ts'
import { serverNow } from '../api/live.ts'
import type { ScheduleView } from '../api/types.ts'
import { ActionButton, actionOf, WhyNot } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { ShownOnce } from '../command/shown-once.tsx'
import { SelectField } from '../forms/select.tsx'
import { scheduleQuery } from '../queries/changes.ts'
import { useTyped } from '../session/typed.ts'
import { Card } from '../ui/card.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { TimeText } from '../values/time.tsx'
import { tPlan } from '../words/plan.ts'

const words = tPlan.schedule.hook
type Hook = NonNullable<ScheduleView['hook']>

/** The URL of a schedule's webhook, how it is signed, and the outcomes of the last calls. */
export const HookCard = ({ schedule, hook }: { schedule: ScheduleView; hook: Hook }) => {
  const [open, setOpen] = useState(false)
  const action = actionOf(schedule, 'secret')
  const url = new URL(hook.url, location.origin).href
  const signature = 'webhook' in schedule.when ? schedule.when.webhook.signature : 'standard'
  const verb = hook.has_secret ? words.rotate : words.make
  return (
    <Card title={words.title}>
      <div className="flex flex-col gap-3 p-4">
        <p className="flex items-start gap-2">
          <code className="min-w-0 wrap-anywhere">POST {url}</code> <CopyButton text={url} label={words.copy_url} />
        </p>
        <p className="max-w-text text-muted">{words.signed[signature]}</p>
        {hook.has_secret ? null : <p>{words.no_secret}</p>}
        {hook.previous_until !== null && Date.parse(hook.previous_until) > serverNow() ? (
          <p>
            {words.previous} <TimeText at={hook.previous_until} />.
          </p>
        ) : null}
        <div className="flex flex-wrap items-center gap-2">
          <ActionButton action={action} press={() => setOpen(true)} main={!hook.has_secret}>
            {verb}
          </ActionButton>
          <WhyNot actions={[action]} />
        </div>
        <h3 className="font-semibold">{words.deliveries}</h3>
        {hook.deliveries.length === 0 ? (
          <p className="text-muted">{words.no_deliveries}</p>
        ) : (
          <ul className="flex flex-col gap-1">
            {hook.deliveries.map(({ at, status, detail }) => (
              <li key={at} className="wrap-anywhere">
                <TimeText at={at} /> {status === null ? null : words.delivery[status]}{' '}
                <span lang="en" className="text-muted">
                  {detail}
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
      {open ? <SecretDialog schedule={schedule} hook={hook} close={() => setOpen(false)} /> : null}
    </Card>
  )
}

type SecretProps = { schedule: ScheduleView; hook: Hook; close: () => void }

/** Creates the first or the next secret; the answer is shown once. */
const SecretDialog = ({ schedule: { schedule_id }, hook, close }: SecretProps) => {
  const client = useQueryClient()
  const [overlap, setOverlap] = useTyped(`secret of ${schedule_id}`, '86400')
  const [secret, setSecret] = useState<string>()
  /** The dialog closes itself after its command, but the secret keeps it open. */
  const kept = useRef(false)
  /** The page behind changes its text as soon as a secret exists. */
  const [verb] = useState(hook.has_secret ? words.rotate : words.make)
  if (secret !== undefined)
    return <ShownOnce title={verb} words={words.shown} shown={[[words.copy_secret, secret]]} close={close} />
  return (
    <CommandDialog<never, HookSecretView>
      title={verb}
      button={verb}
      command={{
        path: `/v1/schedules/${encodeURIComponent(schedule_id)}/secret`,
        body: hook.has_secret ? { overlap_s: Number(overlap) } : {},
      }}
      preview={null}
      done={(reply) => {
        kept.current = true
        setSecret(reply.secret)
        void client.invalidateQueries({ queryKey: scheduleQuery(schedule_id).queryKey })
      }}
      close={() => (kept.current ? undefined : close())}
    >
      <p>{hook.has_secret ? words.rotate_effect : words.make_effect}</p>
      {hook.has_secret ? (
        <SelectField label={words.overlap} choices={words.overlaps} value={overlap} change={setOverlap} />
      ) : null}
    </CommandDialog>
  )
}
