import type { Preview } from '../../shared/contracts/client/preview.ts'
import type { Gate, GateSummary, InboxItem } from '../../shared/contracts/operations/gates.ts'
import type { GateSubject } from '../../shared/contracts/operations/graph.ts'
import type { Waiting } from '../../shared/contracts/operations/waiting.ts'
import { isWatch, type Watch, watchRows } from '../../shared/contracts/watch.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Shown } from '../../shared/evidence/verify.ts'
import { type Command, type Context, needed, opOption, text, type Values } from '../command.ts'
import { CliError, EXIT, missing, usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { fieldLines, firstOf, minute, moment, short, word, zoned } from '../terminal/output.ts'
import { affectedLines } from './affected.ts'
import { operationId } from './operation.ts'

const OP = opOption('gate')
export const COMMENT = { comment: { type: 'string', value: 'TEXT', about: 'what to record beside the vote' } } as const

type Row =
  | ({ type: 'gate' } & InboxItem)
  | ({ type: 'patch' } & Waiting['patches'][number])
  | ({ type: 'failure' } & Waiting['failures'][number])
  | ({ type: 'expiring' } & Waiting['expiring'][number])
const WAYS = { gate: 'may decide', patch: 'may vote', failure: 'may retry', expiring: 'yours' }
const DRIFTED = 'its targets have changed: resume with --acknowledge-drift, or cancel'
/** What waits within the operation, if only a part of it does. */
const partOf = (row: Row): string | null =>
  row.type === 'failure'
    ? null
    : row.type === 'patch'
      ? row.patch_id
      : row.type === 'gate'
        ? row.gate_id
        : (row.gate_id ?? row.plan_id)
/** The argument of the next command. */
const idOf = (row: Row): string => partOf(row) ?? row.operation_id ?? ''
const EXPIRES = {
  operation: 'its deadline is near',
  plan: 'the plan expires',
  gate: 'others decide',
  delegation: 'your delegation ends',
}
const asksOf = (row: Row): string => {
  if (row.type === 'gate') return row.question
  if (row.type === 'expiring') return [EXPIRES[row.kind], ...(row.question === null ? [] : [row.question])].join(': ')
  if (row.type === 'patch') return row.reason
  const [first] = row.nodes
  if (row.node_count === 0) return DRIFTED
  return `${first?.name ?? 'a node'}: ${first?.message ?? 'failed'}${row.node_count > 1 ? ` (${row.node_count} nodes)` : ''}`
}

/** Gates: decisions that operations wait for, each on exactly the subject that was shown. */
export const gateCommands: Command[] = [
  {
    name: 'inbox',
    about:
      'Lists what you can act on: gates, the nearest deadline first, then patches, failures and other deadlines. --for all adds the rest.',
    examples: ['inbox', 'inbox --for all --watch', `inbox --select '$[type="gate"].gate_id' -o json`],
    options: { for: { type: 'string', choices: ['me', 'all'], about: 'whose work to list' } },
    run: async ({ api, out, all }, _, values) => {
      const whose = text(values, 'for') ?? 'me'
      const [gates, { patches, failures, expiring }] = await Promise.all([
        api.list<InboxItem>('/api/v1/gates', { for: whose, sort: 'deadline' }, all),
        api.get<Waiting>(`/api/v1/waiting?for=${whose}`),
      ])
      const rows: Row[] = [
        ...gates.map((item) => ({ type: 'gate' as const, ...item })),
        ...patches.map((item) => ({ type: 'patch' as const, ...item })),
        ...failures.map((item) => ({ type: 'failure' as const, ...item })),
        ...expiring.map((item) => ({ type: 'expiring' as const, ...item })),
      ]
      out.list(rows, idOf, [
        ['waits', ({ type }) => type],
        ['id', (row) => ('gate_id' in row && row.gate_id !== null ? row.gate_id : short(partOf(row) ?? ''))],
        ['op', ({ operation_id }) => short(operation_id ?? '')],
        ['operation', (row) => (row.type === 'expiring' ? row.title : row.operation_title)],
        ['risk', (row) => (row.type === 'gate' ? row.risk : '')],
        ['asks', asksOf],
        [
          zoned('until'),
          (row) => (row.type === 'failure' ? '' : minute(row.type === 'expiring' ? row.expires_at : row.deadline_at)),
        ],
        ['you', (row) => ((row.type === 'gate' ? row.eligible_me : row.mine) ? WAYS[row.type] : '')],
      ])
    },
  },
  {
    name: 'gate list',
    about: 'Lists the gates of an operation.',
    examples: ['gate list --op 77b0aa'],
    options: OP,
    run: async (context, _, values) => {
      const { api, out, all } = context
      const path = `/api/v1/operations/${await operationId(context, needed(values, 'op'))}/gates`
      out.list(await api.list<GateSummary>(path, {}, all), 'gate_id', [
        ['gate', ({ gate_id }) => gate_id],
        ['status', ({ status }) => word(status)],
        ['round', ({ round }) => round],
        ['asks', ({ question }) => question],
        ['decided by', ({ decided }) => decided?.by.name],
      ])
    },
  },
  {
    name: 'gate show',
    takes: 'GATE',
    about: 'Shows what a gate asks, who may decide, and what will change.',
    examples: ['gate show cutover', 'gate show cutover --op 77b0aa -o json'],
    options: OP,
    run: async (context, [gate_id = ''], values) => {
      const { gate } = await readGate(context, gate_id, values)
      context.out.one(gate, () => gate_id, gateLines)
    },
  },
  {
    name: 'gate approve',
    takes: 'GATE',
    about: 'Approves what is shown. Without a terminal, --yes needs --digest: the one that was reviewed.',
    examples: [
      'gate approve cutover',
      "gate approve cutover --op 77b0aa --comment 'looks right'",
      'gate approve cutover --op 77b0aa --yes --digest sha256:1f3a9c02…',
    ],
    options: { ...OP, digest: { type: 'string', about: 'the digest that you reviewed' }, ...COMMENT },
    run: async (context, [gate_id = ''], values) => {
      const { gate, path } = await readGate(context, gate_id, values)
      const subject = {
        noun: 'gate',
        digest: gate.digest,
        subject: gate.subject,
        show: () => context.out.review(gate, gateLines),
      }
      const reviewed_digest = await reviewed(context, subject, text(values, 'digest'))
      const body = { reviewed_digest, round: gate.round, comment: text(values, 'comment') }
      tell(context, await approve<Decided>(context, path, body))
    },
  },
  {
    name: 'gate reject',
    takes: 'GATE',
    about: 'Rejects a gate, with the reason.',
    examples: ["gate reject cutover --op 77b0aa --comment 'wrong release'"],
    options: { ...OP, ...COMMENT },
    run: async (context, [gate_id = ''], values) => {
      const comment = needed(values, 'comment')
      const { gate, path } = await readGate(context, gate_id, values)
      if (!context.yes && !context.dry_run) await confirm(`Reject ${gate_id} of "${gate.operation_title}"?`)
      const body = withDryRun(context, { round: gate.round, comment })
      tell(context, await context.api.post<Decided>(`${path}/reject`, body))
    },
  },
]

type Decided = Gate & { dry_run?: true; effect?: Record<string, unknown> }

/** Approves. Only a person can sign with a passkey, in the console; the error then names its page (exit code 4). */
export const approve = async <T>(context: Context, path: string, body: Record<string, unknown>): Promise<T> => {
  try {
    return await context.api.post<T>(`${path}/approve`, withDryRun(context, body))
  } catch (error) {
    if (error instanceof CliError && error.exit === EXIT.person)
      error.lines.push(`open     ${context.api.url}${path.replace('/api/v1', '')}`)
    throw error
  }
}

/**
 * What the request would do. Not asked with a key: it repeats a request that may have been applied, and whose trial would
 * then be refused.
 */
export const trialOf = async <T>(context: Context, path: string, body: object): Promise<T | undefined> => {
  const { api, dry_run, idempotency_key } = context
  if (idempotency_key !== undefined && !dry_run) return undefined
  return (await api.post<{ effect: T }>(path, { ...body, dry_run: true })).effect
}

/** With `--dry-run` the server answers with the effect and changes no state. */
export const withDryRun = ({ dry_run }: Context, body: Record<string, unknown>) =>
  dry_run ? { ...body, dry_run } : body

const tell = ({ out }: Context, decided: Decided): void =>
  out.one(decided, 'gate_id', ({ gate_id, status, missing, dry_run, effect }) => {
    if (dry_run) return [`Would be: ${JSON.stringify(effect)}`]
    const left = missing.reduce((sum, { count }) => sum + count, 0)
    return [`${word(status)}   gate ${gate_id}${status === 'waiting' ? `, ${left} more needed` : ''}`]
  })

const readGate = async (context: Context, gate_id: string, values: Values) => {
  const op = text(values, 'op')
  const operation_id = op === undefined ? await operationOf(context, gate_id) : await operationId(context, op)
  const path = `/api/v1/operations/${operation_id}/gates/${encodeURIComponent(gate_id)}`
  return { path, gate: await context.api.get<Gate>(path) }
}

/** Without --op: the operation of the only waiting gate with that name. */
const operationOf = async ({ api }: Context, gate_id: string): Promise<string> => {
  const waiting = await api.list<InboxItem>('/api/v1/gates', { for: 'all', page_size: '500' }, false)
  const found = waiting.filter((gate) => gate.gate_id === gate_id)
  if (found.length === 1 && found[0]) return found[0].operation_id
  const remedy = 'Name the operation with --op.'
  if (found.length === 0) throw missing(`No waiting gate is named ${gate_id}.`, remedy)
  throw usageError(`${found.length} waiting gates are named ${gate_id}.`, remedy)
}

/** The object of a decision: the digest that the server asks to approve, and the subject as it is shown. */
type Reviewed = { noun: string; digest: string; subject: unknown; show: () => void }

/** The digest that the decision covers: of the subject shown and confirmed here, or given with --digest. */
export const reviewed = async (
  { yes, dry_run }: Context,
  { noun, digest: asked, subject, show }: Reviewed,
  given: string | undefined,
): Promise<string> => {
  if (given !== undefined) return given
  if (yes) throw usageError(`--yes needs --digest: the digest that \`${noun} show\` printed when it was reviewed.`)
  const shown = digest(subject)
  if (shown !== asked)
    throw new CliError(
      EXIT.error,
      'The server shows another subject than the one it asks to approve. Do not approve; report this to an engineer.',
    )
  show()
  if (!dry_run) await confirm('Approve this?')
  return shown
}

const BINDINGS = {
  exact: 'Exactly this is carried out.',
  checked: 'Read again before the change; refused if it differs.',
  forecast: 'A forecast: the tool may do otherwise.',
}
/** What a tool would do, as an agent previewed it: marked as plans are, sensitive values never. */
export const previewLines = (value: unknown): string[] => {
  const preview = value as Preview | null
  if (preview?.format !== 'signalbox/preview@1') return []
  const { binding, changes, changes_count, plan, base, commit, source, targets, unforeseen = [], no_change } = preview
  const lines = changes.flatMap(({ id, action, note, fields, fields_count }) => [
    `  ${action.padEnd(8)} ${id}${note ? `   ${note}` : ''}`,
    ...fieldLines('           ', fields, fields_count),
  ])
  const left = changes_count - changes.length
  return [
    `  ${no_change ? 'No changes.' : `${changes_count} changes`}${base ? ` on serial ${base.serial}` : ''}. ${BINDINGS[binding]}`,
    ...(targets ? [`  only these and their dependencies: ${targets.join(', ')}`] : []),
    ...firstOf(lines),
    ...(left > 0 ? [`  … ${left} of ${changes_count} changes are too many to be listed`] : []),
    ...unforeseen.map((task) => `  unforeseen  ${task}`),
    ...(plan ? [`  plan   sha256:${plan.content_sha256}`] : []),
    ...(commit ? [`  commit ${commit}`] : []),
    ...(source ? [`  source ${source.commit} of ${source.ref} in ${source.repo}`] : []),
  ]
}

const watchLines = (pointer: string, watch: Watch): string[] => [
  `  ${pointer.split('/')[1]} ${watch.passed ? 'passed' : 'failed'} after ${watch.samples} samples`,
  ...watchRows(watch).map(
    ({ name, failed, samples, last, min, max, baseline }) =>
      `    ${name}   ${failed} of ${samples} bad   last ${last ?? '-'}   min ${min ?? '-'}   max ${max ?? '-'}${baseline === undefined ? '' : `   rest ${baseline ?? '-'}`}`,
  ),
]

/** Who asks and why, on one line whatever the text of the person holds. */
export const askedLine = ({ requester, reason, ticket }: NonNullable<Shown['asked']>): string =>
  `${requester.name}: ${JSON.stringify(reason)}${ticket === null ? '' : `   ${ticket}`}`

const gateLines = (gate: Gate): string[] => {
  const { asked, releases, releases_count = releases.length, changes, bound_outputs } = gate.subject as GateSubject
  const fields = changes.flatMap(({ resource_id, change, fields: moved }) =>
    fieldLines(`  ${change.padEnd(8)} ${resource_id}   `, moved),
  )
  const who = gate.eligible.map(({ name }) => name).join(', ')
  return [
    `${word(gate.status)}   gate ${gate.gate_id}, round ${gate.round}   "${gate.operation_title}"`,
    `  ${gate.question}`,
    ...(asked ? [`  ${askedLine(asked)}`] : []),
    `  ${releases_count} node${releases_count === 1 ? '' : 's'} behind it, ${changes.length} changed resource${changes.length === 1 ? '' : 's'}`,
    ...firstOf(fields),
    ...bound_outputs.flatMap(({ pointer, value }) =>
      isWatch(value) ? watchLines(pointer, value) : previewLines(value),
    ),
    ...affectedLines(gate.context.affected).map((line) => `  ${line}`),
    ...(gate.decided
      ? [`  decided by ${gate.decided.by.name} at ${moment(gate.decided.at)}`]
      : [`  may decide: ${who || 'everyone with gate:decide'}`]),
    ...(gate.deadline_at && gate.status === 'waiting'
      ? [`  until ${moment(gate.deadline_at)}, then ${gate.on_timeout}`]
      : []),
    `  digest ${gate.digest}`,
  ]
}
