import type { IntentRow, IntentView } from '../../shared/contracts/operations/intents.ts'
import type { Operation, Rollback } from '../../shared/contracts/operations/operations.ts'
import type { PlanView } from '../../shared/contracts/operations/plans.ts'
import { type Command, type Context, isWholeId, needed, readDocument, text, wholeId } from '../command.ts'
import { EXIT, missing, usageError } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { fieldLines, firstOf, minute, moment, short, word, zoned } from '../terminal/output.ts'
import { affectedLines } from './affected.ts'
import { operationId } from './operation.ts'

const MAX_SHOWN = 20
const intentId = (context: Context, given: string) =>
  wholeId<IntentRow>(context, given, '/api/v1/intents', ({ intent_id }) => intent_id)

/** Finds a plan by the end of its id or of its intent's. */
const planId = async (context: Context, given: string): Promise<string> => {
  const intents = await context.api.list<IntentRow>('/api/v1/intents', { page_size: '500' }, false)
  const [found, ...others] = intents.filter(({ intent_id, latest_plan_id }) =>
    [latest_plan_id, intent_id].some((id) => id?.endsWith(given)),
  )
  if (others.length > 0)
    throw usageError(`${others.length + 1} ids end with ${JSON.stringify(given)}.`, 'Lists print whole ids with -o id.')
  const plan_id = found?.latest_plan_id ?? (isWholeId(given) ? given : undefined)
  if (plan_id === undefined) throw missing(`No plan or intent has an id that ends with ${JSON.stringify(given)}.`)
  return plan_id
}

export const planCommands: Command[] = [
  {
    name: 'intent create',
    about: 'Creates an intent from a file of YAML or JSON; - is stdin. --dry-run shows its plan and stores neither.',
    examples: [
      'intent create -f intent.yaml',
      'intent create -f intent.yaml --dry-run',
      'intent create -f - -o id < intent.json',
    ],
    options: { file: { type: 'string', short: 'f', value: 'FILE', about: 'a file of YAML or JSON; - is stdin' } },
    run: async ({ api, out, dry_run }, _, values) => {
      const document = readDocument(needed(values, 'file')) as Record<string, unknown>
      if (dry_run) return out.one(await effectOf(api, document), () => '', effectLines)
      const intent = await api.post<IntentView>('/api/v1/intents', document)
      out.one(intent, 'intent_id', ({ intent_id, title }) => [
        `${title}   intent ${intent_id}`,
        `Next: signalbox plan preview ${short(intent_id)}`,
      ])
    },
  },
  {
    name: 'op rollback',
    takes: 'OPERATION',
    about: 'Plans the way back: the values, or the commit, before an ended operation. It starts no plan.',
    examples: ['op rollback 77b0aa', 'op rollback 77b0aa --dry-run', "op rollback 77b0aa --reason '2.4.0 leaks'"],
    options: {
      reason: { type: 'string', value: 'TEXT', about: 'why; recorded' },
      resource: { type: 'string', value: 'RESOURCES', about: 'these targets only, by comma' },
      anyway: { type: 'boolean', about: 'also if targets have changed since: their new values are lost' },
    },
    run: async (context, [given = ''], values) => {
      const { api, out, dry_run, idempotency_key } = context
      if (idempotency_key !== undefined) throw usageError('op rollback sends several requests: it takes no key.')
      const query = new URLSearchParams(values.anyway === true ? [['anyway', 'true']] : [])
      for (const id of text(values, 'resource')?.split(',') ?? []) query.append('resource_id', id)
      const path = `/api/v1/operations/${await operationId(context, given)}/rollback`
      const { intents } = await api.get<Rollback>(query.size === 0 ? path : `${path}?${query}`)
      const reason = text(values, 'reason')
      const plans: (PlanView | Effect)[] = []
      const unplanned: IntentView[] = []
      try {
        for (const { request } of intents) {
          const body = { ...request, ...(reason !== undefined && { reason }) }
          if (dry_run) plans.push(await effectOf(api, body))
          else {
            const intent = await api.post<IntentView>('/api/v1/intents', body)
            unplanned.push(intent)
            plans.push(await api.post<PlanView>(`/api/v1/intents/${intent.intent_id}/plan-preview`, {}))
            unplanned.pop()
          }
        }
      } finally {
        // After a refusal too: these exist.
        if (plans.length + unplanned.length > 0)
          out.one(
            { plans, ...(unplanned.length > 0 && { unplanned }) },
            () => plans.flatMap((plan) => ('plan_id' in plan ? [plan.plan_id] : [])).join('\n'),
            () => [
              ...plans.flatMap((plan) => ('plan_id' in plan ? planLines(plan) : effectLines(plan))),
              ...unplanned.flatMap(intentLines),
            ],
          )
      }
    },
  },
  {
    name: 'intent list',
    about: 'Lists intents, the newest first.',
    examples: ['intent list', 'intent list --all -o json'],
    run: async ({ api, out, all }) =>
      out.list(await api.list<IntentRow>('/api/v1/intents', {}, all), 'intent_id', [
        ['id', ({ intent_id }) => short(intent_id)],
        ['status', ({ status }) => word(status)],
        ['title', ({ title }) => title],
        ['by', ({ requester }) => requester.name],
        [zoned('created'), ({ created_at }) => minute(created_at)],
      ]),
  },
  {
    name: 'intent show',
    takes: 'INTENT',
    about: 'Shows one intent: the goal, the reason, the targets and the outcome.',
    examples: ['intent show 91c2e4'],
    run: async (context, [given = '']) =>
      context.out.one(
        await context.api.get<IntentView>(`/api/v1/intents/${await intentId(context, given)}`),
        'intent_id',
        intentLines,
      ),
  },
  {
    name: 'plan preview',
    takes: 'INTENT',
    about: 'Plans an intent: the changes, their order and their gates.',
    examples: ['plan preview 91c2e4'],
    run: async (context, [given = '']) => {
      const path = `/api/v1/intents/${await intentId(context, given)}/plan-preview`
      context.out.one(await context.api.post<PlanView>(path, {}), 'plan_id', planLines)
    },
  },
  {
    name: 'plan show',
    takes: 'PLAN',
    about: 'Shows a plan, with the hash that a start names. --exit-code exits 8 if the plan changes anything.',
    examples: ['plan show 91c2e4', 'plan show 91c2e4 --exit-code'],
    options: { 'exit-code': { type: 'boolean', about: 'exit 8 if the plan would change anything' } },
    run: async (context, [given = ''], values) => {
      const plan = await context.api.get<PlanView>(`/api/v1/plans/${await planId(context, given)}`)
      context.out.one(plan, 'plan_id', planLines)
      return values['exit-code'] === true && (plan.counts.nodes ?? 0) > 0 ? EXIT.changes : EXIT.done
    },
  },
  {
    name: 'plan start',
    takes: 'PLAN',
    about: 'Starts the reviewed plan; --yes needs --digest, the hash that plan show printed.',
    examples: ['plan start 91c2e4', 'plan start 91c2e4 --yes --digest sha256:1f3a9c02…'],
    options: { digest: { type: 'string', about: 'the hash that you reviewed' } },
    run: async (context, [given = ''], values) => {
      const { api, out, yes, dry_run } = context
      const plan = await api.get<PlanView>(`/api/v1/plans/${await planId(context, given)}`)
      const reviewed = text(values, 'digest')
      if (reviewed === undefined) {
        if (yes) throw usageError('--yes needs --digest: the hash that `plan show` printed when it was reviewed.')
        out.review(plan, planLines)
        if (!dry_run) await confirm('Start this?')
      }
      const body = { reviewed_plan_hash: reviewed ?? plan.plan_hash, ...(dry_run && { dry_run }) }
      const operation = await api.post<Operation>(`/api/v1/plans/${plan.plan_id}/start`, body)
      out.one(operation, 'operation_id', ({ operation_id, title, status }) =>
        dry_run
          ? ['It would start.']
          : [
              `${word(status)}   ${title}   operation ${operation_id}`,
              `Next: signalbox op watch ${short(operation_id)}`,
            ],
      )
    },
  },
]

const SIGNS: Record<string, string> = {
  create: '+ add',
  update: '~ change',
  replace: '! replace',
  delete: '- remove',
  unknown: '? unknown',
}

const intentLines = (intent: IntentView): string[] => {
  const { title, status, intent_id, kind, requester, created_at, reason, ticket, targets_resolved } = intent
  return [
    `${word(status)}   ${title}   ${kind}, intent ${intent_id}`,
    `  by ${requester.name}, ${moment(created_at)}   ${reason}${ticket ? `   ${ticket}` : ''}`,
    `  for ${namesOf(targets_resolved)}`,
    ...(intent.latest_plan_id ? [`  plan ${intent.latest_plan_id}`] : []),
    intent.operation_id
      ? `Next: signalbox op show ${short(intent.operation_id)}`
      : `Next: signalbox plan ${intent.latest_plan_id ? `show ${short(intent.latest_plan_id)}` : `preview ${short(intent_id)}`}`,
  ]
}

type Outline = Pick<PlanView, 'counts' | 'diff' | 'gates' | 'estimates' | 'warnings' | 'conflicts' | 'risk'>
type Effect = {
  targets_resolved: IntentView['targets_resolved']
  plan: Outline | { refused: { detail: string; code: string } }
}

/** Tries an intent: its targets and its plan, and neither is stored. */
const effectOf = async (api: Context['api'], intent: object): Promise<Effect> => {
  const body = { ...intent, dry_run: true, preview: true }
  return (await api.post<{ effect: Effect }>('/api/v1/intents', body)).effect
}

/** The plan that an intent would have, or why it would have none. */
const effectLines = ({ targets_resolved, plan }: Effect): string[] => [
  `For ${namesOf(targets_resolved)}`,
  ...('refused' in plan
    ? [`No plan: ${plan.refused.detail} (${plan.refused.code})`]
    : [
        `Risk ${plan.risk.level}   ${sizeOf(plan)}`,
        ...changeLines(plan),
        ...gateLines(plan),
        ...[...plan.conflicts, ...plan.warnings].map(({ message }) => `Note  ${message}`),
      ]),
]

const namesOf = (targets: IntentView['targets_resolved']): string => {
  const ids = targets.map(({ resource_id }) => resource_id)
  const rest = ids.length - MAX_SHOWN
  return `${ids.slice(0, MAX_SHOWN).join(', ') || 'no resource'}${rest > 0 ? ` and ${rest} more` : ''}`
}

const sizeOf = ({ counts, gates, estimates }: Outline): string =>
  `${counts.nodes ?? 0} nodes, ${gates.length} gate${gates.length === 1 ? '' : 's'}, ${[...new Set([estimates.p50_s, estimates.p90_s].map(span))].join(' to ')}`

const changeLines = ({ diff }: Outline): string[] =>
  firstOf(
    diff.flatMap(({ resource_id, change, fields }) =>
      change === 'no_change' ? [] : fieldLines(`  ${(SIGNS[change] ?? change).padEnd(10)} ${resource_id}   `, fields),
    ),
    MAX_SHOWN,
  )

const gateLines = ({ gates }: Outline): string[] =>
  gates.map(
    ({ gate_id, question, who, can_i }) =>
      `Gate  ${gate_id}   ${question}   ${who.join(', ') || 'gate:decide'}${can_i ? ' (you can)' : ''}`,
  )

const planLines = (plan: PlanView): string[] => [
  `Plan ${short(plan.plan_id)}   "${plan.title}"   ${word(plan.status)}   risk ${plan.risk.level}   ${sizeOf(plan)}`,
  ...changeLines(plan),
  ...gateLines(plan),
  ...affectedLines(plan.impact.affected),
  ...[...plan.conflicts, ...plan.warnings].map(({ message }) => `Note  ${message}`),
  `hash ${plan.plan_hash}`,
  ...(plan.status === 'ready' ? [`Next: signalbox plan start ${short(plan.plan_id)}`] : []),
]

const span = (seconds: number): string =>
  seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`
