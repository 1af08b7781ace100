/** Words of the logs of acts, and of how the platform and its resources are. */
export const audit = {
  title: 'Audit',
  intro: 'Who did what, to what, with which outcome; the newest first. Rows are only ever added.',
  sources_label: 'Which log',
  sources: { operations: 'Operations', catalog: 'Catalog', users: 'Users', 'sign-ins': 'Sign-ins' },
  columns: {
    at: 'When',
    who: 'Who',
    roles: 'Roles then',
    action: 'Did',
    object: 'To',
    outcome: 'Outcome',
    reason: 'Reason',
    request: 'Request',
  },
  caption: 'Acts of this log',
  empty: 'Nothing has been done yet.',
  no_match: 'No act matches.',
  clear: 'Clear filters',
  actor: 'Who, like user:… or svc:worker',
  actor_of_user: 'Id of a user',
  action: 'Did, as it stands in the rows',
  object: 'To, like resource:eu1-web-01',
  from: 'From day (UTC)',
  to: 'Before day (UTC)',
  csv: 'Export as CSV',
  jsonl: 'Export as JSON Lines',
  exporting: (rows: number) => `Reading … ${rows} rows`,
  exported: (rows: number) => `Saved ${rows} rows.`,
  cut: (rows: number, source: string) =>
    `Saved the newest ${rows} rows. All of them: signalbox audit export --source ${source}`,
}

export const health = {
  title: 'Health',
  resources: 'Resources that are not healthy',
  all_well: 'Every resource is healthy, or nobody has said how it is.',
  caption: 'Resources, the worst first',
  see_all: 'See all',
  place: 'Place',
  since: 'Changed',
  parts: 'Parts of the platform',
  parts_note: 'What every process last said of itself.',
  parts_caption: 'Processes of the platform',
  columns: {
    part: 'Part',
    instance: 'Instance',
    status: 'Status',
    since: 'Since',
    not_ready: 'Not ready',
    lags: 'Behind',
  },
  status: { ready: 'Ready', degraded: 'Degraded', unready: 'Not ready', silent: 'Silent' } as Record<string, string>,
  as_of: 'As of',
  /** Lags are named with their unit: `catalog_projection_s`. */
  lag: (name: string, value: number) => {
    const [, words = name, unit = ''] = /^(.*)_(s|ms)$/.exec(name) ?? []
    return `${words.replaceAll('_', ' ')} ${Number(value.toFixed(1))}${unit && ` ${unit}`}`
  },
}
