import type { LogRef } from '../../../db/operations/history/logs.ts'
import { getResource } from '../../../db/operations/history/tail.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import type { Uses } from '../deps.ts'
import { requireLogs, requireVisible } from '../operations/read.ts'
import { maySeeResource } from '../policies/authority.ts'

/** The topics of a stream (console.md 4). */
export type Topics = {
  me: boolean
  inbox: boolean
  operations: boolean
  resources: boolean
  operation_ids: ReadonlySet<string>
  resource_ids: ReadonlySet<string>
  /** Topic text to log. */
  logs: ReadonlyMap<string, LogRef>
}
export type Opened = { topics: Topics; accepted: string[]; refused: { topic: string; reason: string }[] }

const MAX_TOPICS = 50

/** Parses topics; refuses only those that the caller may not see or that have an unknown form. */
export const openTopics = async (deps: Uses<'db'>, caller: Caller, text: string): Promise<Opened> => {
  const wanted = [...new Set(text.split(',').filter((topic) => topic !== ''))]
  if (wanted.length === 0 || wanted.length > MAX_TOPICS) {
    const detail = `A stream follows between 1 and ${MAX_TOPICS} topics.`
    throw wrongAt('/querystring/topics', detail, { as: 'topic', detail })
  }
  const accepted: string[] = []
  const refused: { topic: string; reason: string }[] = []
  const found = {
    me: false,
    inbox: false,
    operations: false,
    resources: false,
    operation_ids: new Set<string>(),
    resource_ids: new Set<string>(),
    logs: new Map<string, LogRef>(),
  }
  for (const topic of wanted) {
    const parsed = parseTopic(topic)
    if (parsed === undefined) {
      refused.push({ topic, reason: 'malformed' })
      continue
    }
    const reason = await refuseTopic(deps, caller, parsed)
    if (reason !== undefined) {
      refused.push({ topic, reason })
      continue
    }
    accepted.push(topic)
    if (parsed.kind === 'operation') found.operation_ids.add(parsed.id)
    else if (parsed.kind === 'resource') found.resource_ids.add(parsed.id)
    else if (parsed.kind === 'log') found.logs.set(topic, parsed.ref)
    else found[parsed.kind] = true
  }
  return { topics: found, accepted, refused }
}

type Parsed =
  | { kind: 'me' | 'inbox' | 'operations' | 'resources' }
  | { kind: 'operation' | 'resource'; id: string }
  | { kind: 'log'; ref: LogRef }

const parseTopic = (topic: string): Parsed | undefined => {
  if (topic === 'me' || topic === 'inbox' || topic === 'operations' || topic === 'resources') return { kind: topic }
  const at = topic.indexOf(':')
  const [kind, rest] = [topic.slice(0, at), topic.slice(at + 1)]
  if (kind === 'operation' && isUuid(rest)) return { kind, id: rest }
  if (kind === 'resource' && rest !== '' && rest.length <= 128) return { kind, id: rest }
  const [operation_id = '', node_id = '', attempt = '', ...more] = kind === 'log' ? rest.split('/') : []
  if (isUuid(operation_id) && node_id !== '' && /^[1-9]\d{0,8}$/.test(attempt) && more.length === 0)
    return { kind: 'log', ref: { operation_id, node_id, role: 'run', attempt: Number(attempt) } }
  return undefined
}

/** Returns why the caller may not follow this topic, or `undefined`. */
const refuseTopic = async (deps: Uses<'db'>, caller: Caller, parsed: Parsed): Promise<string | undefined> => {
  if (parsed.kind === 'log' && !caller.permissions.has('log:read')) return 'permission_missing'
  if ((parsed.kind === 'resource' || parsed.kind === 'resources') && !caller.permissions.has('catalog:read'))
    return 'permission_missing'
  if (parsed.kind === 'operation' || parsed.kind === 'log') {
    const operation_id = parsed.kind === 'log' ? parsed.ref.operation_id : parsed.id
    const required = parsed.kind === 'log' ? requireLogs : requireVisible
    return required(deps, caller, operation_id).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof AppError && error.category === 'not_found') return 'not_found'
        throw error
      },
    )
  }
  if (parsed.kind !== 'resource') return undefined
  const resource = await getResource(deps.db, parsed.id)
  if (!resource) return 'not_found'
  return (await maySeeResource(deps.db, caller, parsed.id)) ? undefined : 'not_found'
}
