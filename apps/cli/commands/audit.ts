import type { Static } from 'typebox'
import type { AuditView } from '../../shared/contracts/audit.ts'
import { type Command, type Context, isWholeId, text, type Values } from '../command.ts'
import { withQuery } from '../session/api.ts'
import { type Column, second, word, zoned } from '../terminal/output.ts'
import { find } from './user.ts'

/** The endpoint of each audit log. The logs of sign-ins and users have fewer columns. */
const SOURCES: Record<string, string> = {
  operations: '/api/v1/audit',
  catalog: '/api/v1/audit/catalog',
  users: '/api/v1/admin/user-events',
  'sign-ins': '/api/v1/admin/auth-events',
}
type Row = Pick<
  Static<typeof AuditView>,
  'at' | 'actor' | 'action' | 'object' | 'outcome' | 'reason' | 'request_id'
> & { details?: Record<string, unknown> | null }

const FILTERS = {
  source: { type: 'string', choices: Object.keys(SOURCES), about: 'the log to read' },
  actor: { type: 'string', about: 'who acted, such as user:eva, eva or svc:worker' },
  action: { type: 'string', about: 'what was done' },
  object: { type: 'string', about: 'what it was done to, such as user:eva or resource:eu1-web-01' },
  from: { type: 'string', value: 'TIME', about: 'the earliest time' },
  to: { type: 'string', value: 'TIME', about: 'the time before which to stop' },
} as const

/** Who did what, to what, and with which outcome: for auditors. */
export const auditCommands: Command[] = [
  {
    name: 'audit list',
    about: 'Lists acts, the newest first, of one --source. --all follows to the end.',
    examples: ['audit list --actor user:eva', 'audit list --source sign-ins --from 2026-11-01T00:00:00Z'],
    options: FILTERS,
    run: async (context, _, values) => {
      const { api, out, all } = context
      const { source, path, query } = await sourceOf(context, values)
      out.list(await api.list<Row>(path, query, all), ({ request_id }) => request_id ?? '', [
        [zoned('when'), ({ at }) => second(at)],
        ['who', ({ actor }) => actor],
        ['did', ({ action }) => action],
        ['to', ({ object }) => object],
        ...(source === 'users' ? ([['details', detailsOf]] satisfies Column<Row>[]) : []),
        ['outcome', ({ outcome }) => word(outcome)],
        ['reason', ({ reason }) => reason],
        ['request', ({ request_id }) => request_id],
      ])
    },
  },
  {
    name: 'audit export',
    about: 'Prints acts as one JSON object per line, page by page to the end.',
    examples: ['audit export --source catalog > audit.jsonl'],
    options: FILTERS,
    run: exportRows,
  },
]

const detailsOf = ({ details }: Row): string =>
  Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')

/** Writes rows as they arrive, so a log of any length takes the memory of one page. */
async function exportRows(context: Context, _: string[], values: Values): Promise<void> {
  const { api, out } = context
  const { path, query } = await sourceOf(context, values)
  let rows = 0
  for (let page_token: string | null | undefined; page_token !== null; ) {
    const page = await api.get<{ items: Row[]; next_page_token: string | null }>(
      withQuery(path, { ...query, page_size: '500', page_token: page_token ?? undefined }),
    )
    for (const row of page.items) out.print(JSON.stringify(row))
    rows += page.items.length
    page_token = page.next_page_token
  }
  out.note(`${rows} rows`)
}

/** The list to read and its filters: lists under `/admin/` call the action `type`, and find all that concerns a user. */
const sourceOf = async (context: Context, values: Values) => {
  const source = text(values, 'source') ?? 'operations'
  const path = SOURCES[source] ?? ''
  const [action, from, to] = ['action', 'from', 'to'].map((name) => text(values, name))
  const [acted, object] = [text(values, 'actor'), await idIn(context, text(values, 'object'))]
  const actor = await idIn(context, acted && !acted.includes(':') && acted !== 'system' ? `${PERSON}${acted}` : acted)
  const common = { actor, from, to }
  if (!path.includes('/admin/')) return { source, path, query: { ...common, action, object } }
  const about = object?.startsWith(PERSON) ? { user_id: object.slice(PERSON.length) } : { object }
  return { source, path, query: { ...common, type: action, ...about } }
}

const PERSON = 'user:'
/** Logs name people by id, which nobody types. */
const idIn = async (context: Context, given: string | undefined): Promise<string | undefined> => {
  const name = given?.startsWith(PERSON) ? given.slice(PERSON.length) : undefined
  return name === undefined || isWholeId(name) ? given : `${PERSON}${(await find(context, name)).id}`
}
