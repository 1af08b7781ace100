import { count } from '../frame/plural.ts'

/** Texts for schedules: intents at set times. */
export const schedule = {
  title: 'Schedules',
  what: 'A schedule states an intent at set times and plans it, with the rights of its owner at that time.',
  empty: 'No schedules yet.',
  how: 'Select New, or run: signalbox schedule create -f FILE.',
  caption: 'Schedules, newest first',
  columns: { schedule: 'Schedule', status: 'Status', when: 'When', next: 'Next', last: 'Last run', by: 'Owner' },
  on: (type_key: string) => `when a ${type_key} starts to match`,
  at: 'once',
  every: (seconds: number) =>
    seconds % 86_400 === 0
      ? count(seconds / 86_400, 'every day', 'every {n} days')
      : seconds % 3600 === 0
        ? count(seconds / 3600, 'every hour', 'every {n} hours')
        : count(seconds / 60, 'every minute', 'every {n} minutes'),
  cron: (fields: string, zone: string) => `${fields} (${zone})`,
  webhook: { standard: 'on a signed webhook', forge: 'on a webhook of a code forge' },
  plan: 'Plans only: a person starts each plan.',
  start: 'Starts each plan by itself, up to its first gate.',
  upcoming: 'Next times',
  none: 'None.',
  runs: 'Runs',
  no_runs: 'It has not run yet.',
  run_columns: { at: 'At', outcome: 'Outcome', leads: 'Leads to', why: 'Why' },
  asks: 'Intent',
  hook: {
    title: 'Webhook',
    copy_url: 'Copy the URL',
    copy_secret: 'Copy the secret',
    signed: {
      standard:
        'Signed as Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature. A delivery is valid for 5 minutes and counts once.',
      forge: 'Signed as code forges do: X-Hub-Signature-256 over the body. The same body counts once.',
    },
    no_secret: 'No delivery is accepted before you create a secret.',
    make: 'Create secret',
    make_effect: 'Give the secret to the sender. It signs every delivery.',
    rotate: 'Rotate secret',
    rotate_effect: 'A new secret is created. Give it to the sender before the old one ends.',
    overlap: 'The old secret ends',
    overlaps: [
      ['86400', 'in 24 hours'],
      ['604800', 'in 7 days'],
      ['0', 'now'],
    ] as [string, string][],
    previous: 'The previous secret ends',
    shown: 'Store this secret with the sender now. It is shown only once.',
    deliveries: 'Last deliveries',
    delivery: { accepted: 'Accepted', ignored: 'Ignored' },
    no_deliveries: 'No delivery with a valid signature has arrived yet.',
  },
  action: { pause: 'Pause', resume: 'Resume', run: 'Run now', end: 'End' } as Record<string, string>,
  effect: {
    pause: 'No further run begins by itself. Running operations continue.',
    resume: 'It continues with its next run.',
    run: 'It runs once now, in addition to its schedule.',
    end: 'It never runs again. Its runs stay readable.',
  } as Record<string, string>,
}
