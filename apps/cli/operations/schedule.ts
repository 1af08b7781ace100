import type { HookSecretView, ScheduleRow, ScheduleView } from '../../shared/contracts/operations/schedules.ts'
import { type Command, type Context, needed, numberOf, readDocument, wholeId } from '../command.ts'
import { confirm } from '../terminal/ask.ts'
import { minute, short, word, zoned } from '../terminal/output.ts'
import { withDryRun } from './gate.ts'

type Act = 'pause' | 'resume' | 'run' | 'end'

const scheduleId = (context: Context, given: string) =>
  wholeId<ScheduleRow>(context, given, '/api/v1/schedules', ({ schedule_id }) => schedule_id)

const whenOf = ({ when }: Pick<ScheduleRow, 'when'>): string =>
  'on' in when
    ? `on ${when.on.type_key}: ${when.on.when}`
    : 'at' in when
      ? `at ${minute(when.at)}`
      : 'cron' in when
        ? `${when.cron} (${when.timezone})`
        : 'webhook' in when
          ? `on a webhook (${when.webhook.signature})${when.webhook.if ? `: ${when.webhook.if}` : ''}`
          : `every ${when.every_s} s`

const lastOf = ({ last_run }: Pick<ScheduleRow, 'last_run'>): string =>
  last_run ? `${word(last_run.state)} ${minute(last_run.due_at)}` : 'never'

const linesOf = (schedule: ScheduleView): string[] => [
  `${schedule.title}   ${word(schedule.status)}   schedule ${schedule.schedule_id}`,
  ...(schedule.status_reason ? [schedule.status_reason] : []),
  `${whenOf(schedule)}; ${schedule.proceed === 'start' ? 'starts its plan' : 'plans, and waits for a person'}; by ${schedule.owner.name}`,
  ...schedule.upcoming.map((at) => `next  ${minute(at)}`),
  ...schedule.runs.map((run) =>
    [minute(run.due_at), word(run.state), run.operation_id ?? run.plan_id ?? '', run.detail ?? ''].join('  ').trimEnd(),
  ),
  ...(schedule.hook?.deliveries ?? []).map(({ at, status, detail }) =>
    ['webhook', minute(at), status ?? '', detail ?? ''].join('  ').trimEnd(),
  ),
]

/** The current schedule, or the result of a dry run. */
type Reply = ScheduleView & { effect?: Record<string, unknown> }
const toldOf = (reply: Reply): string[] =>
  reply.effect ? [`Would be: ${JSON.stringify(reply.effect)}`] : linesOf(reply)

const act = (name: Act, about: string): Command => ({
  name: `schedule ${name}`,
  takes: 'SCHEDULE',
  about,
  examples: [`schedule ${name} 91c2e4`],
  options: { reason: { type: 'string', value: 'TEXT', about: 'why; kept in the audit log' } },
  run: async (context, [given = ''], { reason }) => {
    const id = await scheduleId(context, given)
    if (name === 'end' && !context.yes && !context.dry_run) await confirm('End this schedule for good?')
    const reply = await context.api.post<Reply>(`/api/v1/schedules/${id}/${name}`, withDryRun(context, { reason }))
    context.out.one(reply, 'schedule_id', toldOf)
  },
})

export const scheduleCommands: Command[] = [
  {
    name: 'schedule create',
    about: 'Schedules an intent from a file of YAML or JSON with `when`, `intent` and `proceed`; - is stdin.',
    examples: ['schedule create -f nightly.yaml'],
    options: { file: { type: 'string', short: 'f', value: 'FILE', about: 'a file of YAML or JSON; - is stdin' } },
    run: async (context, _, values) => {
      const body = withDryRun(context, readDocument(needed(values, 'file')) as Record<string, unknown>)
      context.out.one(await context.api.post<Reply>('/api/v1/schedules', body), 'schedule_id', toldOf)
    },
  },
  {
    name: 'schedule list',
    about: 'Lists schedules, the newest first.',
    examples: ['schedule list', 'schedule list --all -o json'],
    run: async ({ api, out, all }) =>
      out.list(await api.list<ScheduleRow>('/api/v1/schedules', {}, all), 'schedule_id', [
        ['id', ({ schedule_id }) => short(schedule_id)],
        ['status', ({ status }) => word(status)],
        ['title', ({ title }) => title],
        ['when', whenOf],
        [zoned('next'), ({ next_at }) => (next_at ? minute(next_at) : '')],
        ['last run', lastOf],
        ['by', ({ owner }) => owner.name],
      ]),
  },
  {
    name: 'schedule show',
    takes: 'SCHEDULE',
    about: 'Shows a schedule: its next run and its last runs.',
    examples: ['schedule show 91c2e4'],
    run: async (context, [given = '']) => {
      const path = `/api/v1/schedules/${await scheduleId(context, given)}`
      context.out.one(await context.api.get<ScheduleView>(path), 'schedule_id', linesOf)
    },
  },
  {
    name: 'schedule secret',
    takes: 'SCHEDULE',
    about: 'Creates the secret of a webhook and shows it once; --overlap keeps the previous one for that many seconds.',
    examples: ['schedule secret 91c2e4', 'schedule secret 91c2e4 --overlap 0'],
    options: {
      overlap: { type: 'string', value: 'SECONDS', about: 'how long the old secret stays valid; a day by default' },
    },
    run: async (context, [given = ''], values) => {
      const body = withDryRun(context, { overlap_s: numberOf(values, 'overlap') })
      const id = await scheduleId(context, given)
      const made = await context.api.post<HookSecretView & Pick<Reply, 'effect'>>(
        `/api/v1/schedules/${id}/secret`,
        body,
      )
      context.out.one(made, 'schedule_id', ({ url, secret, previous_until, effect }) =>
        effect
          ? [`Would be: ${JSON.stringify(effect)}`]
          : [
              `address  ${url}`,
              `secret   ${secret}`,
              'It is not shown again.',
              ...(previous_until ? [`The previous secret is valid until ${minute(previous_until)}.`] : []),
            ],
      )
    },
  },
  act('pause', 'Pauses a schedule: no further run begins.'),
  act('resume', 'Resumes a schedule with its next run.'),
  act('run', 'Runs a schedule now, as an extra run.'),
  act('end', 'Ends a schedule for good.'),
]
