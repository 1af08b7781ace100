/** Words of schedules: intents at set times. */
export const schedule = {
  title: 'Schedules',
  what: 'A schedule states an intent at set times and plans it, with the rights of its owner at that time.',
  empty: 'No schedules yet. Select New, or run: npx signalbox schedule create -f FILE.',
  caption: 'Schedules, newest first',
  columns: { schedule: 'Schedule', status: 'Status', when: 'When', next: 'Next', last: 'Last run', by: 'Owner' },
  on: (type_key: string) => `when a ${type_key} starts to match`,
  at: 'once',
  every: (seconds: number) =>
    seconds % 86_400 === 0
      ? `every ${seconds / 86_400} d`
      : seconds % 3600 === 0
        ? `every ${seconds / 3600} h`
        : `every ${seconds / 60} min`,
  cron: (fields: string, zone: string) => `${fields} (${zone})`,
  webhook: { standard: 'on a signed webhook', forge: 'on a webhook of a forge' },
  plan: 'Plans only: a person starts each plan.',
  start: 'Starts each plan by itself, up to its first gate.',
  upcoming: 'Next times',
  none: 'None.',
  runs: 'Runs',
  no_runs: 'It has not run yet.',
  run_columns: { at: 'At', outcome: 'Outcome', leads: 'Leads to', why: 'Why' },
  asks: 'Intent',
  action: { pause: 'Pause', resume: 'Resume', run: 'Run now', end: 'End' } as Record<string, string>,
  effect: {
    pause: 'No further run begins. What runs continues.',
    resume: 'It continues with its next time.',
    run: 'It runs once now, beside its times.',
    end: 'It never runs again. Its runs stay readable.',
  } as Record<string, string>,
}
