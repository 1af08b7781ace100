import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, read } from '../api/client.ts'
import type { AuditRow, Page } from '../api/types.ts'
import { tAudit } from '../words/audit.ts'

export const SOURCES = ['operations', 'catalog', 'users', 'sign-ins'] as const
export type Source = (typeof SOURCES)[number]
export type AuditFind = { actor: string; action: string; object: string; from: string; to: string }

/** The logs of acts on accounts. */
export const isOfUsers = (source: Source): boolean => source === 'users' || source === 'sign-ins'

/** One page of a log. Days begin at midnight UTC. */
export const readAudit = (
  source: Source,
  { actor, action, object, from, to }: AuditFind,
  page: { page_size: number; page_token?: string },
  signal?: AbortSignal,
): Promise<Omit<Page<AuditRow>, 'as_of'>> => {
  const given = <K extends string>(name: K, value: string) => (value === '' ? {} : { [name]: value })
  const common = {
    page_size: page.page_size,
    ...given('page_token', page.page_token ?? ''),
    ...given('from', from && `${from}T00:00:00Z`),
    ...given('to', to && `${to}T00:00:00Z`),
  }
  const code = codeOf(action, source)
  const acts = { ...common, ...given('actor', actor), ...given('action', code), ...given('object', object) }
  // Of a name that no account has, the logs have no events; as an id it would be refused.
  const about = PERSON.test(object) ? { user_id: nameIn(object) } : given('object', object)
  const ofUsers = { ...common, ...given('actor', actor), ...given('type', code), ...about }
  const options = signal ? { signal } : {}
  switch (source) {
    case 'operations':
      return read(api.GET('/v1/audit', { params: { query: acts }, ...options }))
    case 'catalog':
      return read(api.GET('/v1/audit/catalog', { params: { query: acts }, ...options }))
    case 'users':
      return read(api.GET('/v1/admin/user-events', { params: { query: ofUsers }, ...options }))
    case 'sign-ins':
      return read(api.GET('/v1/admin/auth-events', { params: { query: ofUsers }, ...options }))
  }
}

export const auditQuery = (source: Source, find: AuditFind) =>
  infiniteQueryOptions({
    queryKey: ['audit', source, find],
    initialPageParam: '',
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) => readAudit(source, find, { page_size: 100, page_token: pageParam }, signal),
    getNextPageParam: (last) => last.next_page_token || undefined,
  })

type Names = ReadonlyMap<string, string>
const namesOptions = { staleTime: 60_000, retry: false } as const

/** Names of people by id, of the first page of accounts with `q` in their name; readers of the logs may read them. */
export const namesQuery = (q = '') =>
  queryOptions({
    ...namesOptions,
    queryKey: ['names', q],
    queryFn: async ({ signal }) => {
      const query = { page_size: 500, ...(q && { q }) }
      const { items, next_page_token } = await read(api.GET('/v1/admin/users', { params: { query }, signal }))
      return { names: new Map(items.map(({ id, username }) => [id, username])), whole: !next_page_token }
    },
  })

/** The names of single accounts; one that is gone has none. */
export const namesOfQuery = (ids: readonly string[]) =>
  queryOptions({
    ...namesOptions,
    queryKey: ['names', 'of', ids],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const nameOf = async (user_id: string) => {
        const path = { user_id }
        const { username } = await read(api.GET('/v1/admin/users/{user_id}', { params: { path }, signal }))
        return [[user_id, username] as const]
      }
      return new Map((await Promise.all(ids.map((id) => nameOf(id).catch(() => [])))).flat())
    },
  })

/** How many people beyond the first page of accounts are looked up for one page of a log. */
const LOOKED_UP = 30

/** The people of these rows without a known name. */
export const unnamedIn = (rows: readonly AuditRow[], names: Names): string[] =>
  [
    ...new Set(
      rows.flatMap(({ actor, object }) => [actor, object]).flatMap((text) => PERSON.exec(text ?? '')?.[1] ?? []),
    ),
  ]
    .filter((id) => !names.has(id))
    .slice(0, LOOKED_UP)

/** An action in words. Routes may have two colons before a verb. */
export const actionWords = (code: string): string => {
  const words = code.replaceAll(/[._]/g, ' ')
  return tAudit.audit.actions[code.replace('::', ':')] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

/** Codes of these, and all in the log of users, name the noun before a dot; those of notifications have dots alone. */
const NOUN = /^(intent|plan|schedule|freeze|evidence|engine) /
/** The code of an action that was typed as the rows show it; any other text stays unchanged. */
export const codeOf = (typed: string, source: Source): string => {
  const words = typed.trim().toLowerCase()
  const known = Object.keys(tAudit.audit.actions).find((code) => actionWords(code).toLowerCase() === words)
  if (known !== undefined || !/^[a-z_]+( [a-z_]+)*$/.test(words)) return known ?? typed
  if (words.startsWith('notify ')) return words.replaceAll(' ', '.')
  const nouns = words.replace(/^(dual|directory) /, '$1_')
  return nouns.replace(' ', source === 'users' || NOUN.test(words) ? '.' : '_').replaceAll(' ', '_')
}
/** The words of an action if they lead back to its code, else the code. */
export const typedOf = (code: string, source: Source): string =>
  codeOf(actionWords(code), source) === code ? actionWords(code) : code

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const PERSON = /^(?:user:)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** Replaces ids with the name of a known person, otherwise with the end of the id. */
export const readable = (text: string, names: Names): string =>
  text.replace(UUID, (id) => names.get(id) ?? id.slice(-6))

/** The details of a row, such as whose grant it was and which role it gave. */
export const detailsOf = (details: Record<string, unknown>, names: Names): string =>
  Object.entries(details)
    .filter(([, value]) => value !== null && JSON.stringify(value) !== '{}')
    .map(([name, value]) => `${name}: ${readable(typeof value === 'string' ? value : JSON.stringify(value), names)}`)
    .join(', ')

/** A person may be typed as the logs write them. */
export const nameIn = (typed: string): string => typed.replace(/^user:/, '')

/** Converts a typed name to the form in which the logs identify the person; any other text stays unchanged. */
export const personOf = (typed: string, names: Names): string => {
  const name = nameIn(typed)
  const id = [...names].find(([id, username]) => username === name || id === name)?.[0]
  return id === undefined ? typed : `user:${id}`
}
