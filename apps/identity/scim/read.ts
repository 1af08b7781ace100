import type { ScimType } from '../../../db/identity/scim.ts'
import { LINE } from '../../shared/contracts/shapes.ts'
import { isUuid } from '../../shared/ids.ts'
import { scimError } from './errors.ts'

/** Reads the requests of Entra ID and Okta; ignores attributes that we do not store. */

/** Values that a request sets on a person or group; absent ones stay unchanged. `name` is userName or displayName. */
export type Wanted = {
  name?: string
  external_id?: string | null
  display_name?: string | null
  active?: boolean
  members?: Set<string>
}
type Attributes = Map<string, unknown>
type Op = 'add' | 'replace' | 'remove'

export const invalid = (detail: string) => scimError(400, 'invalidValue', detail)
const CORE = /^urn:ietf:params:scim:schemas:core:2\.0:(user|group):/i
/** Attribute names are case-insensitive and may carry the URN of their schema. */
export const nameOf = (text: string) => text.trim().replace(CORE, '').toLowerCase()

const attributesOf = (value: unknown): Attributes => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw scimError(400, 'invalidSyntax', 'A JSON object is required here.')
  const members = Object.entries(value)
  const given = new Map(members.map(([name, member]) => [nameOf(name), member]))
  if (given.size < members.length) throw scimError(400, 'invalidSyntax', 'An attribute was sent in two spellings.')
  return given
}

export const SPELLED: Record<string, string> = {
  username: 'userName',
  externalid: 'externalId',
  displayname: 'displayName',
}

const MOST_TEXT = 255
const textOf = (name: string, value: unknown): string => {
  if (typeof value === 'string' && value.length > 0 && value.length <= MOST_TEXT) return value
  throw invalid(`${SPELLED[name] ?? name} must have 1 to ${MOST_TEXT} characters.`)
}
const textOrNull = (name: string, value: unknown) => (value == null || value === '' ? null : textOf(name, value))

const SHOWN = new RegExp(LINE, 'u')
/** The map grants rights by a group's exact text, so people must see all of it. A person's is taken as it is: no name keeps a leaver in. */
const shownOf = (name: string, value: unknown): string => {
  const text = textOf(name, value)
  if (SHOWN.test(text)) return text
  throw invalid(`${SPELLED[name] ?? name} must be one visible line, without control or invisible characters.`)
}
const shownOrNull = (name: string, value: unknown) => (value == null || value === '' ? null : shownOf(name, value))

/** Entra sends booleans as text. */
const booleanOf = (_name: string, value: unknown): boolean => {
  const text = String(value).toLowerCase()
  if (text === 'true' || text === 'false') return text === 'true'
  throw invalid('active needs true or false.')
}

/** The column of each stored attribute, and how to read it. */
const KEPT = {
  User: {
    username: ['name', textOf],
    externalid: ['external_id', textOrNull],
    displayname: ['display_name', textOrNull],
    active: ['active', booleanOf],
  },
  Group: { displayname: ['name', shownOf], externalid: ['external_id', shownOrNull] },
} as const

/** Entra sends one value also as a list of one: `[{ "$ref": null, "value": "False" }]`. */
const single = (value: unknown) =>
  Array.isArray(value) && value.length === 1 && typeof value[0] === 'object'
    ? attributesOf(value[0]).get('value')
    : value

const wantedIn = (type: ScimType, given: Attributes): Wanted =>
  Object.fromEntries(
    Object.entries(KEPT[type]).flatMap(([name, [column, read]]) =>
      given.has(name) ? [[column, read(name, single(given.get(name)))]] : [],
    ),
  )

const idsOf = (value: unknown): string[] =>
  [value ?? []].flat().map((member) => {
    const given = attributesOf(member)
    const id = given.get('value')
    if (String(given.get('type')).toLowerCase() === 'group') throw invalid('Nested groups are not supported.')
    if (typeof id !== 'string' || !isUuid(id)) throw invalid('A member needs the id of a user as its value.')
    return id.toLowerCase()
  })

/** Reads a whole person or group: a missing display name clears it, missing members stay. */
export const readWhole = (type: ScimType, body: unknown): Wanted & { name: string } => {
  const given = attributesOf(body)
  const wanted = { display_name: null, ...wantedIn(type, given) }
  const members = type === 'Group' && given.has('members') && { members: new Set(idsOf(given.get('members'))) }
  return { ...wanted, ...members, name: textOf('The name', wanted.name) }
}

const MOST_OPERATIONS = 1000
const operationsOf = (body: unknown) => {
  const list = attributesOf(body).get('operations')
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_OPERATIONS)
    throw scimError(400, 'invalidSyntax', `A patch must have 1 to ${MOST_OPERATIONS} Operations.`)
  return list.map((one) => {
    const given = attributesOf(one)
    const op = String(given.get('op')).toLowerCase() as Op
    const path = given.get('path')
    if (!['add', 'replace', 'remove'].includes(op))
      throw scimError(400, 'invalidSyntax', 'An operation is add, replace or remove.')
    if (path !== undefined && typeof path !== 'string') throw scimError(400, 'invalidPath', 'A path must be a string.')
    // A path of only our schema's URN means the person or group itself, like no path.
    const inside = path && nameOf(`${path}:`) !== '' ? nameOf(path) : undefined
    if (inside === undefined && op === 'remove') throw scimError(400, 'noTarget', 'A removal needs a path.')
    // Otherwise a replacement that lost its value would empty a group.
    if (inside !== undefined && op !== 'remove' && !given.has('value'))
      throw invalid(`To ${op} ${inside}, send a value.`)
    return { op, path: inside, value: given.get('value') }
  })
}

const ONE_MEMBER = /^members\[\s*value\s+eq\s+"([^"]*)"\s*\]$/
const PATH = /^(urn:[\w.:-]+:)?([a-z$][\w$-]*)(?:\[[^\]]*\])?(?:\.[\w$-]+)?$/
/** A part of a stored attribute must not pass for one that is ignored: the directory would believe that it was removed. */
const refusePath = (type: ScimType, path: string) => {
  const [, extension, name = ''] = PATH.exec(path) ?? []
  // An attribute of an extension may have the name of a stored one; one of the core in another spelling is refused.
  const stored =
    (extension === undefined || /:core:/.test(extension)) && (name === 'members' || Object.hasOwn(KEPT[type], name))
  if (name === '' || (stored && path !== name))
    throw scimError(400, 'invalidPath', 'Name an attribute, or remove members[value eq "id"].')
}

/** The combined result of the operations, in order, on the person or group of this id, with these members. */
export const readPatch = (type: ScimType, body: unknown, id: string, before: readonly string[]): Wanted => {
  const wanted: Wanted = {}
  let renamed = false
  const members = new Set(before)
  const change = (op: Op, value: unknown) => {
    const ids = idsOf(value)
    if (op === 'replace' || (op === 'remove' && value == null)) members.clear()
    for (const id of ids) op === 'remove' ? members.delete(id) : members.add(id)
  }
  for (const { op, path, value } of operationsOf(body)) {
    const [, one] = ONE_MEMBER.exec(path ?? '') ?? []
    if (one !== undefined && op === 'remove') members.delete(one)
    else if (path === 'members') change(op, value)
    else {
      if (path !== undefined) refusePath(type, path)
      const given = path === undefined ? attributesOf(value) : new Map([[path, op === 'remove' ? null : value]])
      // Okta repeats the id in its groups.
      renamed ||= given.has('id') && String(given.get('id')).toLowerCase() !== id.toLowerCase()
      Object.assign(wanted, wantedIn(type, given))
      if (given.has('members')) change(op, given.get('members'))
    }
  }
  // Another id keeps no leaver in.
  if (renamed && wanted.active !== false) throw scimError(400, 'mutability', 'id never changes.')
  return type === 'Group' ? { ...wanted, members } : wanted
}
