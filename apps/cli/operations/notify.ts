import type { DeliveryView, DestinationView } from '../../shared/contracts/notifications/notifications.ts'
import type { NotifyRules, Quiet } from '../../shared/contracts/notifications/rules.ts'
import {
  type Command,
  type Context,
  idAmong,
  isWholeId,
  numberOf,
  readDocument,
  text,
  type Values,
} from '../command.ts'
import { usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { minute, short, word, zoned } from '../terminal/output.ts'
import { withDryRun } from './gate.ts'

const BASE = '/api/v1/notifications'
const GROUP = {
  group: { type: 'string', value: 'KEY', about: 'those of a group instead of your own; for administrators' },
} as const

const pathOf = (part: string, values: Values): string => {
  const group = text(values, 'group')
  return `${BASE}/${part}${group === undefined ? '' : `?group=${encodeURIComponent(group)}`}`
}

const destinationsOf = async ({ api }: Context, values: Values): Promise<DestinationView[]> =>
  (await api.get<{ items: DestinationView[] }>(pathOf('destinations', values))).items

/** The path of the destination whose id ends with this, or of an action on it. */
const pathAt = async (context: Context, given: string, values: Values, part = ''): Promise<string> => {
  const ids = async () => (await destinationsOf(context, values)).map(({ destination_id }) => destination_id)
  return pathOf(`destinations/${isWholeId(given) ? given : idAmong(await ids(), given)}${part}`, values)
}

const deliveryId = async ({ api }: Context, given: string, values: Values): Promise<string> => {
  if (isWholeId(given)) return given
  const query = { group: text(values, 'group'), state: 'dead' }
  const dead = await api.list<DeliveryView>(`${BASE}/deliveries`, query, true)
  const ids = dead.map(({ delivery_id }) => delivery_id)
  return idAmong(ids, given)
}

/** The current destination, or the result of a dry run. */
type Reply = DestinationView & { effect?: Record<string, unknown> }
const linesOf = ({ effect, name, kind, address, status, status_reason, destination_id }: Reply): string[] =>
  effect
    ? [`Would be: ${JSON.stringify(effect)}`]
    : [
        `${name}   ${word(status)}   ${kind} ${address}   destination ${destination_id}`,
        ...(status_reason ? [status_reason] : []),
        ...(status === 'unconfirmed'
          ? [`A code was sent to it: signalbox notify confirm ${short(destination_id)} CODE`]
          : []),
      ]

const quietWords = (quiet: Quiet | null): string => {
  if (!quiet) return 'never'
  const days = quiet.days ? `, beginning on ${quiet.days.join(', ')}` : ''
  return `${quiet.from} to ${quiet.to} (${quiet.timezone})${days}`
}
type Rules = NotifyRules & { effect?: NotifyRules }
const rulesLines = (reply: Rules): string[] => {
  const { events, min_risk, steps, quiet, digest_s } = reply.effect ?? reply
  return [
    `events  ${events.join(', ') || 'none'}   from risk ${min_risk}`,
    ...(steps.length === 0 ? ['at once  every active destination'] : []),
    ...steps.map(({ destination_id, after_s }) => `after ${after_s} s  ${short(destination_id)}`),
    `quiet  ${quietWords(quiet)}   digest  ${digest_s} s`,
  ]
}

const FILE = { type: 'string', short: 'f', value: 'FILE', about: 'new rules, YAML or JSON; - is stdin' } as const

/** How a person is notified of decisions that wait for them and of operations that stop. */
export const notifyCommands: Command[] = [
  {
    name: 'notify list',
    about: 'Lists where you are notified.',
    examples: ['notify list', 'notify list --group netops'],
    options: GROUP,
    run: async (context, _, values) =>
      context.out.list(await destinationsOf(context, values), 'destination_id', [
        ['id', ({ destination_id }) => short(destination_id)],
        ['status', ({ status }) => word(status)],
        ['name', ({ name }) => name],
        ['kind', ({ kind }) => kind],
        ['address', ({ address }) => address],
      ]),
  },
  {
    name: 'notify add',
    takes: 'KIND ADDRESS',
    about: 'Adds a destination: email and its address, or webhook, slack or teams and a URL.',
    examples: [
      'notify add email eva@example.org',
      'notify add slack https://hooks.slack.com/services/… --group netops',
    ],
    options: { ...GROUP, name: { type: 'string', value: 'NAME', about: 'your name for it; the kind by default' } },
    run: async (context, [kind = '', address = ''], values) => {
      const body = withDryRun(context, { kind, address, name: text(values, 'name') ?? kind })
      context.out.one(await context.api.post<Reply>(pathOf('destinations', values), body), 'destination_id', linesOf)
    },
  },
  {
    name: 'notify confirm',
    takes: 'DESTINATION CODE',
    about: 'Confirms a mail address by the code that was sent there.',
    examples: ['notify confirm 77b0aa 48201733'],
    options: GROUP,
    run: async (context, [given = '', code = ''], values) => {
      const path = await pathAt(context, given, values, '/confirm')
      context.out.one(await context.api.post<Reply>(path, withDryRun(context, { code })), 'destination_id', linesOf)
    },
  },
  {
    name: 'notify test',
    takes: 'DESTINATION',
    about: 'Sends a test there; notify log shows whether it arrived.',
    examples: ['notify test 77b0aa'],
    options: GROUP,
    run: async (context, [given = ''], values) => {
      const path = await pathAt(context, given, values, '/test')
      context.out.one(await context.api.post<Reply>(path, withDryRun(context, {})), 'destination_id', linesOf)
    },
  },
  {
    name: 'notify secret',
    takes: 'DESTINATION',
    about: 'Prints the secret with which the receiver of a webhook verifies signatures; --next makes a new one first.',
    examples: ['notify secret 77b0aa', 'notify secret 77b0aa --next --overlap 3600'],
    options: {
      ...GROUP,
      next: { type: 'boolean', about: 'make the next secret; messages are signed with both for a while' },
      overlap: { type: 'string', value: 'SECONDS', about: 'with --next: for how long; a day by default' },
    },
    run: async (context, [given = ''], values) => {
      const overlap_s = numberOf(values, 'overlap')
      const path = await pathAt(context, given, values, '/secret')
      if (overlap_s !== undefined && !values.next) throw usageError('--overlap needs --next.')
      if (values.next) {
        const made = await context.api.post<Reply>(path, withDryRun(context, { overlap_s }))
        if (context.dry_run) return context.out.one(made, 'destination_id', linesOf)
      }
      context.out.one(await context.api.get<{ secret: string }>(path), 'secret', ({ secret }) => [secret])
    },
  },
  {
    name: 'notify remove',
    takes: 'DESTINATION',
    about: 'Removes a destination.',
    examples: ['notify remove 77b0aa --yes'],
    options: GROUP,
    run: async (context, [given = ''], values) => {
      const path = await pathAt(context, given, values)
      if (!context.yes && !context.dry_run) await confirm('Remove this destination?')
      await context.api.send('DELETE', path)
    },
  },
  {
    name: 'notify rules',
    about: 'Shows which events notify you and when, or sets the rules from a file.',
    examples: ['notify rules -o yaml > rules.yaml', 'notify rules -f rules.yaml', 'notify rules --reset'],
    options: { ...GROUP, file: FILE, reset: { type: 'boolean', about: 'restore the defaults' } },
    run: async (context, _, values) => {
      const [file, path] = [text(values, 'file'), pathOf('rules', values)]
      if (file !== undefined && values.reset) throw usageError('--file and --reset exclude one another.')
      const send = async () => {
        if (values.reset) return (await context.api.send<Rules>('DELETE', path)).body
        if (file === undefined) return context.api.get<Rules>(path)
        const body = withDryRun(context, readDocument(file) as Record<string, unknown>)
        return (await context.api.send<Rules>('PUT', path, body)).body
      }
      context.out.one(await send(), () => 'rules', rulesLines)
    },
  },
  {
    name: 'notify log',
    about: 'Lists messages to your destinations, the newest first.',
    examples: ['notify log', 'notify log --state dead -o json'],
    options: {
      ...GROUP,
      state: { type: 'string', choices: ['queued', 'sent', 'dead', 'obsolete'], about: 'only those in this state' },
    },
    run: async ({ api, out, all }, _, values) => {
      const query = { group: text(values, 'group'), state: text(values, 'state') }
      out.list(await api.list<DeliveryView>(`${BASE}/deliveries`, query, all), 'delivery_id', [
        ['id', ({ delivery_id }) => short(delivery_id)],
        ['state', ({ state }) => word(state)],
        ['to', ({ destination_id }) => short(destination_id)],
        ['about', ({ purpose, notices }) => [...new Set(notices.map(({ event }) => event))].join(', ') || purpose],
        [zoned('made'), ({ created_at }) => minute(created_at)],
        ['tries', ({ attempts }) => attempts],
        ['error', ({ last_error }) => last_error],
      ])
    },
  },
  {
    name: 'notify redeliver',
    takes: 'MESSAGE',
    about: 'Resends a message that was given up.',
    examples: ['notify redeliver 77b0aa'],
    options: GROUP,
    run: async (context, [given = ''], values) => {
      const path = pathOf(`deliveries/${await deliveryId(context, given, values)}/redeliver`, values)
      const reply = await context.api.post<DeliveryView & { effect?: { redeliver: string } }>(
        path,
        withDryRun(context, {}),
      )
      context.out.one(reply, 'delivery_id', ({ effect, delivery_id, state }) => [
        effect ? `Would be sent again to ${effect.redeliver}.` : `${word(state)}   message ${delivery_id}`,
      ])
    },
  },
]
